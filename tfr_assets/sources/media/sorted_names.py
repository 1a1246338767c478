"""Names of any number of files in natural order, in bounded memory: sorted runs are spooled, then merged."""

import heapq
import pickle
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from tfr_assets.storage.file_names import natural

RUN = 32_768  # names that are sorted at once; with the keys they are sorted by, about a kilobyte each
_MERGED = 64  # runs that are open at once
_BLOCK = 256  # names that are read of each run at once


class SortedNames:
    """Names in natural order. They may be gone through any number of times.

    Attributes:
        count: Their number.
    """

    def __init__(self, names: Iterable[str], folder: Path, run: int = RUN) -> None:
        """Sorts names.

        Args:
            names: Paths.
            folder: For spool files; the caller removes it.
            run: How many are sorted in memory at once.
        """
        self.count = 0
        self._folder = folder
        self._files = 0
        unsorted = iter(names)
        runs: list[Path] = []
        while block := list(islice(unsorted, run)):
            self.count += len(block)
            block.sort(key=natural)
            runs.append(self._spool(block))
            if len(runs) == _MERGED:
                runs = [self._merge(runs)]
        self._run = runs[0] if len(runs) == 1 else self._merge(runs)

    def __iter__(self) -> Iterator[str]:
        return _read(self._run)

    def _merge(self, runs: list[Path]) -> Path:
        merged = self._spool(heapq.merge(*map(_read, runs), key=natural))
        for run in runs:
            run.unlink()
        return merged

    def _spool(self, names: Iterable[str]) -> Path:
        path = self._folder / f"names-{self._files:06d}"
        self._files += 1
        rest = iter(names)
        with path.open("xb") as file:
            while block := list(islice(rest, _BLOCK)):
                pickle.dump(block, file, pickle.HIGHEST_PROTOCOL)
        return path


def _read(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        while file.peek(1):
            yield from pickle.load(file)
