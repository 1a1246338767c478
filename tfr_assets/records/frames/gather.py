"""Records from anywhere in a file into one buffer: one read for those that lie together, and both CRCs of each checked.

The file is read, not mapped: one that is cut meanwhile is an error rather than a crash. Reads are made from compiled
code, since a call from Python costs more than to read a small record from the page cache.
"""

import os

import numpy as np
from numba import types

from tfr_assets.records.frames.manifest import FRAMING
from tfr_assets.records.frames.scan import FaultKind
from tfr_assets.records.kernels.crc32c import masked_crc_at
from tfr_assets.records.kernels.jit import address_of, kernel, load_i64, load_u32, store_i64

_GAP = 4096  # bytes between two records for which one read costs less than two
_HEADER = 12
_WORD = types.int64
_pread = types.ExternalFunction("pread", _WORD(types.int32, _WORD, _WORD, _WORD))
_INTACT, _LENGTH_CRC, _OTHER_LENGTH, _DATA_CRC = range(4)
_KINDS = {_LENGTH_CRC: FaultKind.LENGTH_CRC, _OTHER_LENGTH: FaultKind.CONTENT, _DATA_CRC: FaultKind.DATA_CRC}


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def _plan(bounds, first, records, order, count, gap, target, runs, frames):
    """Joins records that lie together to runs of bytes.

    Args:
        bounds: Address of an int64 a record of the file, and one more: where each frame starts, which is where the one
            before ends.
        first: Number of the file's first record.
        records: Address of the wanted records' numbers, int64s in ascending order.
        order: Address of an int64 each: which of the frames it becomes.
        count: Number of them.
        gap: Bytes between two frames up to which they are of one run.
        target: Where in the buffer the first run goes.
        runs: Address of triples of int64, which become each run's start in the file, its size, and its place in the
            buffer.
        frames: Address of triples of int64, which become start in the buffer and size of each payload, and its number.

    Returns:
        Number of runs.
    """
    found = np.int64(0)
    start = end = np.int64(0)
    for i in range(count):
        number = load_i64(records + i * 8)
        begin, stop = load_i64(bounds + (number - first) * 8), load_i64(bounds + (number - first) * 8 + 8)
        if found == 0 or begin - end > gap:
            target += end - start
            start, end = begin, stop
            found += 1
        end = max(end, stop)
        run = runs + (found - 1) * 24
        store_i64(run, start)
        store_i64(run + 8, end - start)
        store_i64(run + 16, target)
        frame = frames + load_i64(order + i * 8) * 24
        store_i64(frame, target + begin - start + _HEADER)
        store_i64(frame + 8, stop - begin - FRAMING)
        store_i64(frame + 16, number)
    return found


@kernel("int64(int64, int64, int64, int64)")
def _read(descriptor, runs, count, buffer):
    """Reads runs into a buffer; returns the number of those before the first that does not come whole."""
    for i in range(count):
        offset, size, target = load_i64(runs + i * 24), load_i64(runs + i * 24 + 8), load_i64(runs + i * 24 + 16)
        done = np.int64(0)
        while done < size:
            got = _pread(np.int32(descriptor), buffer + target + done, size - done, offset + done)
            if got <= 0:
                return i
            done += got
    return count


@kernel("int64(int64, int64, int64, int64)")
def _check(buffer, frames, count, problems):
    """Checks frames: header, length, data.

    Args:
        buffer: Address of the bytes.
        frames: Address of triples of int64: start of the payload in the buffer, its size, and anything.
        count: Number of frames.
        problems: Address of an int64 a frame, which becomes what is wrong with it.

    Returns:
        Number of frames with which something is wrong.
    """
    wrong = np.int64(0)
    for i in range(count):
        start, size = buffer + load_i64(frames + i * 24), load_i64(frames + i * 24 + 8)
        problem = np.int64(_INTACT)
        if load_u32(start - 4) != masked_crc_at(start - 12, 8):
            problem = np.int64(_LENGTH_CRC)
        elif load_i64(start - 12) != size:
            problem = np.int64(_OTHER_LENGTH)
        elif load_u32(start + size) != masked_crc_at(start, size):
            problem = np.int64(_DATA_CRC)
        store_i64(problems + i * 8, problem)
        wrong += problem != _INTACT
    return wrong


class Runs:
    """What must be read of one file.

    Args:
        bounds: int64 of shape (records + 1,): where each of the file's frames starts, and where the last one ends.
        first: Number of the file's first record.
        records: int64 of shape (n,): numbers of the wanted records, in ascending order; some may come several times.
        order: int64 of shape (n,): which of `frames` each of them becomes.
        frames: int64 of shape (…, 3): takes start in the buffer and size of each payload, and its number.
        target: Where in the buffer this file's bytes go.

    Attributes:
        end: Where in the buffer they end.
    """

    def __init__(
        self, bounds: np.ndarray, first: int, records: np.ndarray, order: np.ndarray, frames: np.ndarray, target: int
    ) -> None:
        self._runs = np.empty((len(records), 3), np.int64)
        found = _plan(
            address_of(bounds), first, address_of(records), address_of(order), len(records), _GAP, target,
            address_of(self._runs), address_of(frames),
        )  # fmt: skip
        self._runs = self._runs[:found]
        self.end = int(self._runs[-1, 1:].sum()) if found else target

    def __len__(self) -> int:
        return len(self._runs)

    def read(self, descriptor: int, buffer: np.ndarray, first: int, stop: int) -> None:
        """Reads some of the runs. What the file does not have becomes zeros, which no frame is valid with.

        Args:
            descriptor: The file, open for reading; its position is left alone.
            buffer: uint8: the buffer of all files.
            first: The first run to read.
            stop: The one behind the last.

        Raises:
            OSError: The file cannot be read.
        """
        while first < stop:
            address = address_of(self._runs) + 24 * first
            first += _read(descriptor, address, stop - first, address_of(buffer))
            if first < stop:  # it failed, was interrupted, or the file ends there
                offset, size, target = self._runs[first].tolist()
                _read_slowly(descriptor, offset, buffer[target : target + size])
                first += 1


def _read_slowly(descriptor: int, offset: int, target: np.ndarray) -> None:
    """Reads bytes with Python's own calls, which go on after an interrupt and raise what is wrong."""
    done = 0
    while done < target.size:
        got = os.preadv(descriptor, [target[done:].data], offset + done)
        if not got:
            target[done:] = 0
            return
        done += got


def check_frames(buffer: np.ndarray, frames: np.ndarray) -> dict[int, FaultKind]:
    """Returns what is wrong with frames, by index among them: nothing, if all are intact.

    Args:
        buffer: uint8.
        frames: Contiguous int64 of shape (n, 3), as `Runs` fills them.
    """
    problems = np.empty(len(frames), np.int64)
    if not _check(address_of(buffer), address_of(frames), len(frames), address_of(problems)):
        return {}
    return {index: _KINDS[int(problems[index])] for index in np.flatnonzero(problems).tolist()}
