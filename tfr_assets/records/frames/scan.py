"""Strict scanning: every frame of a file, both CRCs checked, every fault found and stepped over.

TensorFlow's reader stops at the first fault, or ignores it silently. This one goes on: after a frame whose data
CRC is wrong with the next frame; after a header that cannot be trusted at the next byte where a header's CRC holds and
its record fits into the file.

Memory is one buffer, as large as the largest record but at least 1 MiB. A record beyond a limit is a fault, and so is
one for which there is no memory; it is skipped, and the next one is read.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import cast

import numpy as np

from tfr_assets.records.frames.compression import InputStream, StreamFault
from tfr_assets.records.kernels.crc32c import masked_crc_at
from tfr_assets.records.kernels.digest import fold
from tfr_assets.records.kernels.jit import PADDING, address_of, called, inlined, kernel, load_i64, load_u32, store_i64
from tfr_assets.storage.git_lfs import IS_POINTER, LOOK, is_pointer
from tfr_assets.units import MAX_RECORD_BYTES, Advance, megabytes

_BUFFER = 1 << 20  # fits the second-level cache: what was read is still there when its CRC is computed
_UNKNOWN = 1 << 62  # bytes left, where only the end of the stream tells
_LONGEST_COMPRESSED = 1 << 31  # the size of a compressed record is not bounded by the file's
_FRAMES, _FAULTS = 1 << 16, 1 << 10  # of one call to the kernel

# the kernel's state
(
    CONSUMED, FRAMES, FAULTS, RECORDS, INTACT, PAYLOAD, DIGEST, NEEDED, RESYNC, RESUMED, PASSED_OVER, LONGEST, MOST,
    _STATE,
) = range(14)  # fmt: skip
# a fault's fields, and its kinds in the kernel
_KIND, _RECORD, _OFFSET, _STORED, _COMPUTED, _FAULT = range(6)
_LENGTH_CRC, _DATA_CRC, _TRUNCATED_HEADER, _TRUNCATED_RECORD, _TOO_LONG = range(5)


class FaultKind(StrEnum):
    """What can be wrong with a file."""

    LENGTH_CRC = "length CRC is wrong"
    DATA_CRC = "data CRC is wrong"
    TRUNCATED_HEADER = "truncated header"
    TRUNCATED_RECORD = "truncated record"
    TOO_LONG = "record is too long to be read"
    TRUNCATED_STREAM = "truncated compressed stream"
    DAMAGED_STREAM = "damaged compressed stream"
    MISSING = "file is missing"
    UNREADABLE = "file cannot be read"
    COMPRESSION = "wrong compression"
    SIZE = "wrong number of bytes"
    COUNT = "wrong number of records"
    CONTENT = "other records than written"
    MANIFEST = "manifest is invalid"
    INDEX = "index is missing or not the one that was written"
    STRAY = "no manifest describes this file"
    EXTRA = "file does not belong here"
    MIXED = "file is of another version than the others of its set"
    BESIDE = "not what was written"
    STALE = "file is not of the current plan"
    UNWRITTEN = "nothing was written yet"
    FEATURES = "record does not fit the feature spec"


_OF_FILES = {
    FaultKind.MISSING, FaultKind.UNREADABLE, FaultKind.COMPRESSION, FaultKind.SIZE, FaultKind.MANIFEST,
    FaultKind.INDEX, FaultKind.STRAY, FaultKind.EXTRA, FaultKind.MIXED, FaultKind.BESIDE, FaultKind.STALE,
    FaultKind.UNWRITTEN,
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a file, precise enough to find it with a hex editor.

    Attributes:
        path: The file.
        record: Index of the first record affected; 0 where a file as a whole is.
        offset: Byte at which the faulty field starts; in the decompressed stream for a record, in the file
            where the compressed stream's is.
        kind: What is wrong.
        detail: What was found and expected.
    """

    path: str
    record: int
    offset: int
    kind: FaultKind
    detail: str = ""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        place = "" if self.kind in _OF_FILES else f"record {self.record} at byte {self.offset}: "
        return f"{self.path}: {place}{self.kind.value}{detail}"


@dataclass(frozen=True)
class Scan:
    """What a scan found.

    Attributes:
        records: Number of intact records.
        payload_bytes: Their bytes, without framing.
        stream_bytes: Bytes of the decompressed stream.
        digest: Digest over the intact records.
        faults: The first faults, in order of offset.
        fault_count: Number of all faults.
        sound: Number of intact records before the first fault, and the digest over them.
        stops: Of the places that were asked for, those between two records: the place, and how many intact records are
            before it with which digest.
    """

    records: int
    payload_bytes: int
    stream_bytes: int
    digest: int
    faults: tuple[Fault, ...]
    fault_count: int
    sound: tuple[int, int]
    stops: tuple[tuple[int, int, int], ...] = ()


@inlined
def _header_holds(address):
    return load_u32(address + 8) == masked_crc_at(address, 8)


@inlined
def _fits(length, left):
    """Whether a record fits into the bytes left; a length beyond int64 is negative here."""
    return 0 <= length <= left - 16


@called
def _add_fault(faults, index, kind, record, offset, stored, computed):
    faults += index * _FAULT * 8
    store_i64(faults + _KIND * 8, kind)
    store_i64(faults + _RECORD * 8, record)
    store_i64(faults + _OFFSET * 8, offset)
    store_i64(faults + _STORED * 8, stored)
    store_i64(faults + _COMPUTED * 8, computed)
    return index + 1


@kernel("void(int64, int64, int64, int64, int64, int64, int64[::1])")
def _scan(buffer, size, offset, left, frames, faults, state):
    """Steps over all whole frames in a buffer.

    Args:
        buffer: Address of bytes of the stream.
        size: Number of these bytes.
        offset: Where in the stream they start.
        left: Bytes from there to the end of the stream, or _UNKNOWN.
        frames: Address of triples of int64: start in the buffer, payload size and index of each intact record.
        faults: Address of lines of _FAULT int64s.
        state: Carried from call to call; FRAMES and FAULTS start again. NEEDED tells how many bytes from CONSUMED on
            the next step takes, PASSED_OVER how many of the stream are not looked at. LONGEST is the limit of records.
            It returns after MOST faults.
    """
    position, count, n_faults = np.int64(0), np.int64(0), np.int64(0)
    records, intact, payload = state[RECORDS], state[INTACT], state[PAYLOAD]
    digest = np.uint64(state[DIGEST])
    needed, most = np.int64(0), state[MOST]
    longest = np.int64(_LONGEST_COMPRESSED if left == _UNKNOWN else _UNKNOWN)
    state[RESUMED] = -1
    while position < left and count < _FRAMES and n_faults < most:
        here = buffer + position
        if state[PASSED_OVER]:
            step = min(state[PASSED_OVER], size - position)
            position += step
            state[PASSED_OVER] -= step
            if state[PASSED_OVER]:
                needed = np.int64(1)
                break
            continue
        if size - position < 12:
            if size < left:  # the stream goes on after the buffer
                needed = min(np.int64(12), left - position)
                break
            if not state[RESYNC]:
                n_faults = _add_fault(
                    faults, n_faults, _TRUNCATED_HEADER, records, offset + position, 0, left - position
                )
            position = left
            break
        length = load_i64(here)
        if state[RESYNC]:
            if _header_holds(here) and _fits(length, min(longest, left - position)):
                state[RESYNC] = 0
                state[RESUMED] = offset + position
                break
            position += 1
            continue
        if not _header_holds(here):
            n_faults = _add_fault(
                faults, n_faults, _LENGTH_CRC, records, offset + position, load_u32(here + 8), masked_crc_at(here, 8)
            )
        elif not _fits(length, min(longest, left - position)):
            rest = np.int64(-1) if left == _UNKNOWN else left - position - 12
            n_faults = _add_fault(faults, n_faults, _TRUNCATED_RECORD, records, offset + position, length, rest)
        elif length > state[LONGEST]:
            n_faults = _add_fault(faults, n_faults, _TOO_LONG, records, offset + position, length, state[LONGEST])
            records += 1
            state[PASSED_OVER] = length + 16
            continue
        elif size - position < length + 16:
            needed = length + 16
            break
        else:
            stored, computed = load_u32(here + 12 + length), masked_crc_at(here + 12, length)
            if stored == computed:
                store_i64(frames + count * 24, position + 12)
                store_i64(frames + count * 24 + 8, length)
                store_i64(frames + count * 24 + 16, records)
                count += 1
                intact += 1
                payload += length
                digest = fold(digest, length, stored)
            else:
                n_faults = _add_fault(faults, n_faults, _DATA_CRC, records, offset + position + 12, stored, computed)
            records += 1
            position += length + 16
            continue
        records += 1  # the header cannot be trusted: one record is lost, and where it ends is unknown
        state[RESYNC] = 1
        position += 1
    state[CONSUMED], state[FRAMES], state[FAULTS], state[NEEDED] = position, count, n_faults, needed
    state[RECORDS], state[INTACT], state[PAYLOAD], state[DIGEST] = records, intact, payload, np.int64(digest)


FrameVisitor = Callable[[np.ndarray, np.ndarray, int], None]
"""Called with the buffer (uint8), the intact records in it (int64 of shape (n, 3): start, size and index of each
payload) and the offset of the buffer in the stream. PADDING bytes after the buffer can be read, too. Its
content is gone after the call."""


def scan_stream(
    stream: InputStream,
    path: Path | str,
    visit: FrameVisitor | None = None,
    progress: Advance | None = None,
    max_faults: int = 1000,
    origin: int = 0,
    first: int = 0,
    max_record_bytes: int = MAX_RECORD_BYTES,
    stops: Sequence[int] = (),
) -> Scan:
    """Reads a stream to its end and checks every frame.

    Args:
        stream: The file's content.
        path: Its name, for the faults.
        visit: Called for all intact records in turn.
        progress: Called with the number of bytes of the stream just scanned.
        max_faults: Faults to keep; the rest are only counted.
        origin: Where in the file's stream this one starts, for one that is a part of it: on a record's boundary.
        first: Index of the record there.
        max_record_bytes: Length beyond which a record is a fault rather than read.
        stops: Places in the stream, in order, of which the digest so far is wanted.

    Raises:
        OSError: The file cannot be read.
    """
    blocks = scan_blocks(stream, path, progress, max_faults, origin, first, max_record_bytes, stops)
    while True:
        try:
            buffer, frames, offset = next(blocks)
        except StopIteration as end:
            return cast(Scan, end.value)
        if visit:
            visit(buffer, frames, offset)


def scan_blocks(
    stream: InputStream,
    path: Path | str,
    progress: Advance | None = None,
    max_faults: int = 1000,
    origin: int = 0,
    first: int = 0,
    max_record_bytes: int = MAX_RECORD_BYTES,
    stops: Sequence[int] = (),
) -> Generator[tuple[np.ndarray, np.ndarray, int], None, Scan]:
    """Does what `scan_stream` does, for a caller that takes the records rather than being called.

    Yields:
        What `FrameVisitor` takes. The buffer's content is gone with the next block.

    Returns:
        What the scan found.

    Raises:
        OSError: The file cannot be read.
    """
    buffer = _padded_buffer(_BUFFER)
    frames, raw_faults = np.empty((_FRAMES, 3), np.int64), np.empty((_FAULTS, _FAULT), np.int64)
    state = np.zeros(_STATE, np.int64)
    found: list[Fault] = []
    sound: tuple[int, int] | None = None
    total = filled = 0
    offset = origin
    state[RECORDS], state[LONGEST] = first, max_record_bytes
    known = None if stream.size is None else origin + stream.size
    at_end = False
    stream_fault: StreamFault | None = None
    ahead, passed = list(reversed(stops)), []
    while True:
        while not at_end and filled < buffer.size and (filled < _BUFFER // 2 or filled < state[NEEDED]):
            try:
                got = stream.read_into(buffer[filled:].data)
            except StreamFault as fault:
                stream_fault, got = fault, 0
            at_end = got == 0
            filled += got
        left = filled if at_end else _UNKNOWN if known is None else max(known - offset, filled)
        if stream_fault:
            left = _UNKNOWN  # what is cut off by the stream's own fault is no second fault
        if offset == first == 0 and is_pointer(buffer[: min(filled, LOOK)].tobytes()):
            return _pointer(str(path), filled)
        state[MOST] = _FAULTS if sound else 1
        size = min(filled, ahead[-1] - offset) if ahead else filled
        _scan(address_of(buffer), size, offset, left, address_of(frames), address_of(raw_faults), state)
        if state[FRAMES]:
            yield buffer, frames[: state[FRAMES]], offset
        total += int(state[FAULTS])
        if total and not sound:
            sound = _intact(state)
        found += [_fault(str(path), line) for line in raw_faults[: state[FAULTS]].tolist()]
        if state[RESUMED] >= 0 and len(found) == total:
            found[-1] = _add_resume(found[-1], int(state[RESUMED]))
        del found[max_faults:]
        consumed, needed = int(state[CONSUMED]), int(state[NEEDED])
        if progress:
            progress(consumed)
        offset += consumed
        if ahead and (offset == ahead[-1] or (needed and size < filled)):  # it is reached, or within a record
            if offset == ahead.pop():
                passed.append((offset, *_intact(state)))
            needed = state[NEEDED] = 0
        filled -= consumed
        buffer[:filled] = buffer[consumed : consumed + filled]
        if at_end and (filled == 0 or needed):
            break
        if needed > buffer.size:
            try:  # a plain file bounds it; a compressed one grows only as bytes really come
                grown = _padded_buffer(needed if known is not None else min(needed, 2 * buffer.size))
            except MemoryError:
                sound = sound or _intact(state)
                total += 1
                if total <= max_faults:
                    found.append(_no_memory(str(path), int(state[RECORDS]), offset, needed - 16))
                state[RECORDS] += 1
                state[PASSED_OVER] = needed
            else:
                grown[:filled] = buffer[:filled]
                buffer = grown
    if stream_fault:
        kind = FaultKind.TRUNCATED_STREAM if stream_fault.truncated else FaultKind.DAMAGED_STREAM
        total += 1
        found.append(Fault(str(path), int(state[RECORDS]), stream_fault.offset, kind, str(stream_fault)))
    records, digest = _intact(state)
    return Scan(
        records=records,
        payload_bytes=int(state[PAYLOAD]),
        stream_bytes=offset + filled - origin,
        digest=digest,
        faults=tuple(found),
        fault_count=total,
        sound=sound or _intact(state),
        stops=tuple(passed),
    )


def _pointer(path: str, size: int) -> Scan:
    fault = Fault(path, 0, 0, FaultKind.UNREADABLE, IS_POINTER)
    return Scan(0, 0, size, 0, faults=(fault,), fault_count=1, sound=(0, 0))


def _intact(state: np.ndarray) -> tuple[int, int]:
    return int(state[INTACT]), int(state[DIGEST]) & (2**64 - 1)


def _padded_buffer(size: int) -> np.ndarray:
    """Returns a buffer after whose end a visitor's kernels may read."""
    return np.empty(size + PADDING, np.uint8)[:size]


def _fault(path: str, line: list[int]) -> Fault:
    kind, record, offset, stored, computed = line
    if kind == _TRUNCATED_HEADER:
        return Fault(path, record, offset, FaultKind.TRUNCATED_HEADER, f"{computed} of 12 bytes")
    if kind == _TRUNCATED_RECORD:
        length = stored & (2**64 - 1)
        rest = "which no compressed record has" if computed < 0 else f"{computed} bytes are left"
        detail = f"header says {length} bytes of data and 4 of CRC, {rest}"
        return Fault(path, record, offset, FaultKind.TRUNCATED_RECORD, detail)
    if kind == _TOO_LONG:
        detail = (
            f"header says {stored} bytes, the limit is {computed}; if there are such records, raise it with "
            "max_record_bytes=, or --max-record-bytes of the command line"
        )
        return Fault(path, record, offset, FaultKind.TOO_LONG, detail)
    crc_kind = FaultKind.LENGTH_CRC if kind == _LENGTH_CRC else FaultKind.DATA_CRC
    return Fault(path, record, offset, crc_kind, f"stored {stored:08x}, computed {computed:08x}")


def _no_memory(path: str, record: int, offset: int, length: int) -> Fault:
    detail = f"there is no memory for its {length} bytes ({megabytes(length)}); use fewer workers, or a larger machine"
    return Fault(path, record, offset, FaultKind.TOO_LONG, detail)


def _add_resume(fault: Fault, offset: int) -> Fault:
    return replace(fault, detail=f"{fault.detail}; next intact header at byte {offset}")
