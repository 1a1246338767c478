"""Records from anywhere in a file into one buffer, side by side in the order asked, and both CRCs of each checked.

The file is read, not mapped: one that is cut meanwhile is an error rather than a crash. Reads are made from compiled
code, since a call from Python costs more than to read a small record from the page cache. A call of the system costs
as much as to read some KB more, so that records that lie together are read at once, into memory that stays in the
second-level cache, and copied from there: to write anywhere costs less than to read from anywhere later.
"""

import os

import numpy as np
from numba import types

from tfr_assets.records.frames.manifest import FRAMING
from tfr_assets.records.frames.scan import FaultKind
from tfr_assets.records.kernels.crc32c import masked_crc_at
from tfr_assets.records.kernels.jit import (
    address_of,
    called,
    copy_bytes,
    inlined,
    kernel,
    load_i64,
    load_u32,
    store_i64,
)

GAP = 8192
"""Bytes between two records for which one read of a local file costs less than two."""
SCRATCH = 256 << 10
"""Bytes that `Runs.read` needs to work in."""
_LONGEST = 1 << 30
_HEADER = 12
(
    _START,  # of a run: where it starts in the file
    _SIZE,  # bytes of it there
    _FIRST,  # index of its first record
    _DIRECT,  # whether the run lies in the buffer as in the file
    _FIELDS,
) = range(5)
_RUN = _FIELDS * 8
_WORD = types.int64
_pread = types.ExternalFunction("pread", _WORD(types.int32, _WORD, _WORD, _WORD))
_INTACT, _LENGTH_CRC, _OTHER_LENGTH, _DATA_CRC = range(4)
_KINDS = {_LENGTH_CRC: FaultKind.LENGTH_CRC, _OTHER_LENGTH: FaultKind.CONTENT, _DATA_CRC: FaultKind.DATA_CRC}


@kernel("void(int64, int64, int64, int64, int64, int64)")
def _measure(bounds, first, records, order, count, frames):
    """Writes size and number of each record to its frame; arguments as those of `_plan`."""
    for i in range(count):
        number = load_i64(records + i * 8)
        place = bounds + (number - first) * 8
        frame = frames + load_i64(order + i * 8) * 24
        store_i64(frame + 8, load_i64(place + 8) - load_i64(place) - FRAMING)
        store_i64(frame + 16, number)


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def _plan(bounds, first, records, order, count, gap, most, longest, runs):
    """Joins records that lie together to runs of bytes.

    Args:
        bounds: Address of an int64 a record of the file, and one more: where each frame starts, which is where the one
            before ends.
        first: Number of the file's first record.
        records: Address of the wanted records' numbers, int64s in ascending order.
        order: Address of an int64 each: which of the frames it becomes.
        count: Number of them.
        gap: Bytes between two frames up to which they are of one run.
        most: Bytes of a run that is not read right to its place.
        longest: Bytes of one that is; one record may have more.
        runs: Address of _FIELDS int64s a record, and as many more, which become those of each run. One more follows, of
            which there is only the index.

    Returns:
        Number of runs.
    """
    found = start = end = before = place = np.int64(0)
    is_direct = False
    for i in range(count):
        number, to = load_i64(records + i * 8), load_i64(order + i * 8)
        begin, stop = load_i64(bounds + (number - first) * 8), load_i64(bounds + (number - first) * 8 + 8)
        is_next = is_direct and number == before + 1 and to == place + 1
        is_next &= stop - start <= longest
        if found == 0 or not (is_next or (begin - end <= gap and stop - start <= most)):
            start, is_next = begin, True
            store_i64(runs + found * _RUN + _START * 8, start)
            store_i64(runs + found * _RUN + _FIRST * 8, i)
            found += 1
        is_direct, end, before, place = is_next, stop, number, to
        store_i64(runs + (found - 1) * _RUN + _SIZE * 8, end - start)
        store_i64(runs + (found - 1) * _RUN + _DIRECT * 8, np.int64(is_direct))
    store_i64(runs + found * _RUN + _FIRST * 8, count)
    return found


@inlined
def _frame_of(run, order, frames):
    """Address of the frame of a run's first record."""
    return frames + load_i64(order + load_i64(run + _FIRST * 8) * 8) * 24


@called
def _problem(start, size):
    """What is wrong with the frame of a payload."""
    if load_u32(start - 4) != masked_crc_at(start - 12, 8):
        return _LENGTH_CRC
    if load_i64(start - 12) != size:
        return _OTHER_LENGTH
    if load_u32(start + size) != masked_crc_at(start, size):
        return _DATA_CRC
    return _INTACT


@called
def _put_run(run, source, bounds, first, records, order, frames, buffer, problems):
    """Copies what was read of a run to the places of its records, unless it lies there, and checks them."""
    begin = load_i64(run + _START * 8)
    for i in range(load_i64(run + _FIRST * 8), load_i64(run + _RUN + _FIRST * 8)):
        frame = load_i64(order + i * 8)
        start, size = load_i64(frames + frame * 24), load_i64(frames + frame * 24 + 8)
        found = source + load_i64(bounds + (load_i64(records + i * 8) - first) * 8) - begin
        store_i64(problems + frame * 8, _problem(found + _HEADER, size))
        if found != buffer + start - _HEADER:
            copy_bytes(buffer + start - _HEADER, found, size + FRAMING)


@kernel("void(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def _put(run, source, bounds, first, records, order, frames, buffer, problems):
    _put_run(run, source, bounds, first, records, order, frames, buffer, problems)


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def _read(descriptor, runs, count, scratch, bounds, first, records, order, frames, buffer, problems):
    """Reads runs; returns the number of those before the first that does not come whole."""
    for number in range(count):
        run = runs + number * _RUN
        offset, size = load_i64(run + _START * 8), load_i64(run + _SIZE * 8)
        target = scratch
        if load_i64(run + _DIRECT * 8):
            target = buffer + load_i64(_frame_of(run, order, frames)) - _HEADER
        done = np.int64(0)
        while done < size:
            got = _pread(np.int32(descriptor), target + done, size - done, offset + done)
            if got <= 0:
                return number
            done += got
        _put_run(run, target, bounds, first, records, order, frames, buffer, problems)
    return count


class Runs:
    """What must be read of one file.

    Args:
        bounds: int64 of shape (records + 1,): where each of the file's frames starts, and where the last one ends.
        first: Number of the file's first record.
        records: int64 of shape (n,): numbers of the wanted records, in ascending order; some may come several times.
        order: int64 of shape (n,): which of `frames` each of them becomes.
        frames: int64 of shape (…, 3): takes size of each payload, and its number; where it starts, `lay_out` adds.
        reach: How far apart records may be to be read at once, and how many bytes at most; None: as is best locally.
    """

    def __init__(
        self, bounds: np.ndarray, first: int, records: np.ndarray, order: np.ndarray, frames: np.ndarray,
        reach: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self._held = bounds, records, order, frames
        lists = address_of(bounds), first, address_of(records), address_of(order)
        table = np.empty((len(records) + 1, _FIELDS), np.int64)
        _measure(*lists, len(records), address_of(frames))
        gap, most, longest = (GAP, SCRATCH, _LONGEST) if reach is None else (*reach, reach[1])
        found = _plan(*lists, len(records), gap, most, longest, address_of(table))
        self._runs, self._lists = table[: found + 1], (*lists, address_of(frames))

    def __len__(self) -> int:
        return len(self._runs) - 1

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Where each run starts in the file, and ends."""
        return [(start, start + size) for start, size in self._runs[:-1, [_START, _SIZE]].tolist()]

    def read(
        self, descriptor: int, buffer: np.ndarray, problems: np.ndarray, scratch: np.ndarray, first: int, stop: int
    ) -> None:
        """Reads and checks some of the runs. What the file does not have becomes zeros, which no frame is valid with.

        Args:
            descriptor: The file, open for reading; its position is left alone.
            buffer: uint8: the buffer of all files.
            problems: int64, one for each of `frames`: takes what is wrong; see `faults_in`.
            scratch: uint8 of size SCRATCH, to work in.
            first: The first run to read.
            stop: The one behind the last.

        Raises:
            OSError: The file cannot be read.
        """
        while first < stop:
            count, places = stop - first, (address_of(buffer), address_of(problems))
            first += _read(descriptor, self._address(first), count, address_of(scratch), *self._lists, *places)
            if first < stop:  # it failed, was interrupted, or the file ends there
                offset, size = self._runs[first, [_START, _SIZE]].tolist()
                self.put(first, _read_slowly(descriptor, offset, size), buffer, problems)
                first += 1

    def put(self, run: int, content: np.ndarray, buffer: np.ndarray, problems: np.ndarray) -> None:
        """Takes what was read of a run, and checks it; arguments as for `read`."""
        places = address_of(buffer), address_of(problems)
        _put(self._address(run), address_of(content), *self._lists, *places)

    def _address(self, run: int) -> int:
        return address_of(self._runs) + _RUN * run


def lay_out(frames: np.ndarray) -> int:
    """Gives frames, of which the sizes are known, their places side by side in a buffer; returns what they take.

    Args:
        frames: int64 of shape (n, 3), as `Runs` fills them.
    """
    ends = np.cumsum(frames[:, 1] + FRAMING)
    frames[:, 0] = ends - frames[:, 1] - FRAMING + _HEADER
    return int(ends[-1]) if len(ends) else 0


def _read_slowly(descriptor: int, offset: int, size: int) -> np.ndarray:
    """Reads bytes with Python's own calls, which go on after an interrupt and raise what is wrong."""
    found, done = np.zeros(size, np.uint8), 0
    while done < size and (got := os.preadv(descriptor, [found[done:].data], offset + done)):
        done += got
    return found


def faults_in(problems: np.ndarray) -> dict[int, FaultKind]:
    """Returns what is wrong with frames, by index among them: nothing, if all are intact.

    Args:
        problems: As `Runs` fills them.
    """
    return {index: _KINDS[int(problems[index])] for index in np.flatnonzero(problems).tolist()}
