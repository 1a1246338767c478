"""Plain writes of what a writer wrote: what a writer is compared with, and what its disk can do."""

import os
import shutil
import time
from functools import partial
from pathlib import Path

from tfr_assets.storage.atomic import write_all
from tfr_assets.storage.reserve import FlushedFile

_CHUNK = 512 * 1024


class PlainWrites:
    """Writes of the bytes that a writer wrote, and of nothing else."""

    def __init__(self, work: Path) -> None:
        """Prepares for a writer whose files are in the folder `out` of `work`."""
        self._work = work
        self._contents: list[memoryview] = []

    def take_over(self) -> None:
        """Takes the bytes of the files just written, and removes these."""
        files = sorted(path for path in (self._work / "out").iterdir() if ".tfrecord" in path.name)
        self._contents = [memoryview(path.read_bytes()) for path in files]
        shutil.rmtree(self._work / "out")

    def write(self, early: bool = False) -> float:
        """Returns the seconds that they take when they are only written; `early`: the disk begins early."""
        temporary, path = self._work / "temporary", self._work / "plain"
        path.mkdir()
        started = time.perf_counter()
        for number, content in enumerate(self._contents):
            with temporary.open("wb", buffering=0) as file:
                flushed = FlushedFile(file.fileno())
                write = flushed.write if early else partial(write_all, file.fileno())
                for start in range(0, len(content), _CHUNK):
                    write(content[start : start + _CHUNK])
                if early:
                    flushed.end()
                os.fsync(file.fileno())
            temporary.rename(path / str(number))
        seconds = time.perf_counter() - started
        shutil.rmtree(path)
        return seconds
