"""Records by number, from all files of a dataset, into one buffer, in the order asked."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from tfr_assets.reading.access.open_files import AnyFile, OpenFiles
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.records.frames.gather import SCRATCH, Runs, faults_in, lay_out
from tfr_assets.records.frames.scan import Fault, FaultKind
from tfr_assets.records.frames.segments import stale
from tfr_assets.records.kernels.jit import PADDING

_HEADER = 12
_RUNS_A_THREAD = 256  # fewer are read before a thread has started
_REQUESTS = 16  # at once, to a store
_TOGETHER = 64 << 20  # bytes of records that are read together at the most

Memory = Callable[[int], np.ndarray]
"""Gives at least so many bytes, uint8, for as long as the records are used."""


@dataclass(frozen=True)
class Gathered:
    """Records side by side.

    Attributes:
        buffer: uint8, which holds all of them.
        frames: int64 of shape (n, 3): start in the buffer and size of each record, and its number, as they were asked
            for.
        faults: What is wrong with some of them, by number, in ascending order.
    """

    buffer: np.ndarray
    frames: np.ndarray
    faults: Mapping[int, Fault]


class Source(Protocol):
    """Where records come from."""

    def gather(self, records: np.ndarray, memory: Memory, threads: int = 1) -> Gathered:
        """Reads records, those of a file in ascending order, and those that lie together at once.

        Args:
            records: int64 of shape (n,): numbers of records, in any order, also several times.
            memory: Where they go.
            threads: How many read at once.

        Raises:
            StaleError: A file is not the one that was opened, or not any more.
            DamagedFile: A file cannot be read.
        """

    def misfit(self, number: int, text: str) -> Fault:
        """Returns the fault of a record that does not fit the feature spec."""


def file_records(files: RecordFiles, opened: OpenFiles | None = None) -> "FileRecords":
    """Returns the records of files.

    Args:
        files: The files.
        opened: The same; None: they are opened here.
    """
    firsts = np.cumsum([0, *(manifest.records for manifest in files.manifests)], dtype=np.int64)
    return FileRecords(opened or OpenFiles(files), firsts)


def batches_together(payload_bytes: int, records: int, batch_size: int, gap: int) -> int:
    """Returns how many batches of records from anywhere are best read together: as many as lie together, by and large.

    Args:
        payload_bytes: Of all records.
        records: Number of them.
        batch_size: Records of a batch.
        gap: Bytes between two records for which one read costs less than two.
    """
    if not payload_bytes:
        return 1
    most = int(_TOGETHER * records / payload_bytes)  # records
    return max(1, most // batch_size) if most * gap >= payload_bytes else 1


class FileRecords:
    """Records in files, each read when it is asked for. See `Source`.

    Args:
        files: The files.
        firsts: int64 of shape (files + 1,): the number of each file's first record, and the number of all.
    """

    def __init__(self, files: OpenFiles, firsts: np.ndarray) -> None:
        self._files, self._firsts = files, firsts

    def gather(self, records: np.ndarray, memory: Memory, threads: int = 1) -> Gathered:
        """See `Source`."""
        order = np.argsort(records)
        ascending = records[order]
        frames = np.empty((len(records), 3), np.int64)
        cuts = np.searchsorted(ascending, self._firsts).tolist()
        parts: list[_Part] = []
        for index, (begin, stop) in enumerate(pairwise(cuts)):
            if begin < stop:
                bounds, first = self._files.bounds(index), int(self._firsts[index])
                lists, reach = (ascending[begin:stop], order[begin:stop]), self._files.reach(index)
                parts.append(_Part(index, Runs(bounds, first, *lists, frames, reach)))
        buffer, problems = memory(lay_out(frames) + PADDING), np.empty(len(records), np.int64)
        at_once = self._files.at_once
        for some in (parts[number : number + at_once] for number in range(0, len(parts), at_once)):
            files = [self._files[part.index] for part in some]
            _read(some, files, buffer, problems, threads)
            for file in files:
                file.check()
        faults: dict[int, Fault] = {}
        for at, kind in faults_in(problems).items():
            number = int(frames[at, 2])
            faults[number] = self._fault(number, kind)
        return Gathered(buffer, frames, dict(sorted(faults.items())))

    def misfit(self, number: int, text: str) -> Fault:
        """See `Source`."""
        file, record = self._place(number)
        return Fault(file.path, record, int(file.bounds[record]) + _HEADER, FaultKind.FEATURES, text)

    def _fault(self, number: int, kind: FaultKind) -> Fault:
        """Returns what is wrong with a record.

        Raises:
            StaleError: It is another record than the index says.
        """
        file, record = self._place(number)
        start, end = file.bounds[record : record + 2].tolist()
        if end > file.size:
            kind = FaultKind.TRUNCATED_RECORD
        elif kind is FaultKind.CONTENT:
            raise stale(file.path)
        offset = start + _HEADER if kind is FaultKind.DATA_CRC else start
        return Fault(file.path, record, offset, kind)

    def _place(self, number: int) -> tuple[AnyFile, int]:
        index = int(np.searchsorted(self._firsts, number, "right")) - 1
        return self._files[index], number - int(self._firsts[index])


class LoadedRecords:
    """All records of some files, read and checked once and kept in memory. See `Source`.

    Args:
        source: The files.
        count: Number of records.
        threads: How many read at once.

    Raises:
        StaleError: A file is not the one that was opened.
        DamagedFile: A file cannot be read.
        MemoryError: They do not fit into memory.
    """

    def __init__(self, source: FileRecords, count: int, threads: int) -> None:
        self._source = source
        found = source.gather(np.arange(count), lambda size: np.empty(size, np.uint8), threads)
        self._buffer, self._frames, self._faults = found.buffer, found.frames, found.faults

    def gather(self, records: np.ndarray, memory: Memory, threads: int = 1) -> Gathered:
        """See `Source`."""
        wrong = np.intersect1d(records, list(self._faults)).tolist() if self._faults else []
        return Gathered(self._buffer, self._frames[records], {number: self._faults[number] for number in wrong})

    def misfit(self, number: int, text: str) -> Fault:
        """See `Source`."""
        return self._source.misfit(number, text)


@dataclass(frozen=True)
class _Part:
    """What is read of one file."""

    index: int
    runs: Runs


def _read(
    parts: Sequence[_Part], files: Sequence[AnyFile], buffer: np.ndarray, problems: np.ndarray, threads: int
) -> None:
    """Reads all runs of all parts, each of its file, and each thread its share of them."""
    total = sum(len(part.runs) for part in parts)
    if any(file.is_remote for file in files):
        threads = min(_REQUESTS, total)
    else:
        threads = max(1, min(threads, total // _RUNS_A_THREAD))
    errors: list[BaseException] = []

    def work(first: int, stop: int) -> None:
        before, scratch = 0, np.empty(SCRATCH, np.uint8)
        for part, file in zip(parts, files, strict=True):
            count = len(part.runs)
            begin, end = max(first - before, 0), min(stop - before, count)
            before += count
            if begin < end:
                file.read(part.runs, buffer, problems, scratch, begin, end)

    def catch(first: int, stop: int) -> None:
        try:
            work(first, stop)
        except BaseException as error:
            errors.append(error)

    bounds = [total * index // threads for index in range(threads + 1)]
    others = [
        threading.Thread(target=catch, args=share, name="tfr-gather", daemon=True) for share in pairwise(bounds[1:])
    ]
    for thread in others:
        thread.start()
    catch(0, bounds[1])
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]
