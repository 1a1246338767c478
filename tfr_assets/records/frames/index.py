"""The offset index: one text line `offset size` a record, framing included, as NVIDIA DALI and `tfrecord` read it.

For a compressed file, offsets count in the decompressed stream.

The format holds no checksum; the file's manifest does. No reader depends on an index: merging takes the sizes of frames
from it, and what was read despite damage is compared with it, if it is the one that was written.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tfr_assets.records.frames.manifest import FRAMING, IndexChecksum
from tfr_assets.records.kernels.crc32c import crc32c
from tfr_assets.records.kernels.jit import (
    address_of,
    inlined,
    kernel,
    leading_zeros,
    load_i64,
    load_u8,
    store_i64,
    store_u8,
    store_u64,
)
from tfr_assets.storage.mirror import bring

_BLOCK = 4 << 20  # bytes of text at a time: memory does not grow with the file
_LINE = 42  # two numbers of at most twenty digits, a space and a line feed
_OVERRUN = 8  # bytes that may be written beyond the text
_EIGHT = np.uint64(10**8)
_ZEROS = np.uint64(0x30303030_30303030)  # eight times the digit


@inlined
def _eight_digits(number):
    """Returns the digits of a number below 10^8, a byte each, the first in the lowest: all halves divided at once."""
    pairs = number // np.uint64(10_000) | number % np.uint64(10_000) << np.uint64(32)
    tens = (pairs * np.uint64(10_486) >> np.uint64(20)) & np.uint64(0x0000007F_0000007F)  # each of four digits / 100
    pairs = tens | (pairs - tens * np.uint64(100)) << np.uint64(16)
    tens = (pairs * np.uint64(103) >> np.uint64(10)) & np.uint64(0x000F_000F_000F_000F)  # each of two digits / 10
    return tens | (pairs - tens * np.uint64(10)) << np.uint64(8)


@inlined
def _put_first(address, number):
    """Writes a number below 10^8 without leading zeros; up to 8 bytes are overwritten."""
    digits = _eight_digits(number)
    last = np.uint64(1 << 56)  # is written even if it is zero
    first = (digits | last) & (~(digits | last) + np.uint64(1))
    zeros = np.int64(63 - leading_zeros(first)) // 8
    store_u64(address, (digits | _ZEROS) >> np.uint64(8 * zeros))
    return address + 8 - zeros


@inlined
def _put_eight(address, number):
    store_u64(address, _eight_digits(number) | _ZEROS)
    return address + 8


@inlined
def _put_number(address, number):
    """Writes a number that is not negative, in decimal, and returns the address after it."""
    low, high = number % _EIGHT, number // _EIGHT
    if not high:
        return _put_first(address, low)
    if high < _EIGHT:
        return _put_eight(_put_first(address, high), low)
    return _put_eight(_put_eight(_put_first(address, high // _EIGHT), high % _EIGHT), low)


@kernel("int64(int64, int64, int64, int64)")
def _format(sizes, count, offset, target):
    address = target
    for i in range(count):
        size = load_i64(sizes + i * 8)
        address = _put_number(address, np.uint64(offset))
        store_u8(address, np.uint8(32))
        address = _put_number(address + 1, np.uint64(size))
        store_u8(address, np.uint8(10))
        address += 1
        offset += size
    return address - target


def index_lines(sizes: np.ndarray, offset: int) -> memoryview:
    """Returns the lines of consecutive frames.

    Args:
        sizes: int64 of shape (records,): the frames' sizes in bytes.
        offset: Where the first frame starts.
    """
    text = np.empty(sizes.size * _LINE + _OVERRUN, np.uint8)
    size = _format(address_of(sizes), sizes.size, offset, address_of(text))
    return text[:size].data


def read_index(path: Path, checksum: IndexChecksum | None = None) -> np.ndarray:
    """Returns an index as int64 of shape (records, 2): offset and size of each frame.

    Args:
        path: The index.
        checksum: What the manifest says of it; None: it is only compared with itself.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not an index, or not the one that was written.
    """
    parts = list(_read_parts(path, checksum))
    return np.concatenate(parts) if parts else np.empty((0, 2), np.int64)


def read_sizes(
    path: Path, records: int, payload_bytes: int, checksum: IndexChecksum | None = None
) -> Iterator[np.ndarray]:
    """Yields the frames' sizes, some at a time, from the index of a file that holds so many records and bytes in them.

    Args:
        path: The index.
        records: Number of records in the file.
        payload_bytes: Size of the records, without framing.
        checksum: As for `read_index`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not an index, or another one; raised at the end at the latest.
    """
    left, bytes_left = records, payload_bytes + FRAMING * records
    for part in _read_parts(path, checksum):
        sizes = np.ascontiguousarray(part[:, 1])
        left -= len(sizes)
        bytes_left -= int(sizes.sum())
        yield sizes
    if left or bytes_left:
        raise ValueError(f"{path} is another file's index")


def is_as_written(path: Path, checksum: IndexChecksum | None) -> bool:
    """Whether an index is the one that was written. Where none was, it must not be there.

    Raises:
        SourceError: It lies in a store, which refused.
    """
    if checksum is None:
        return not path.exists()
    try:
        for _ in _blocks(path, checksum):
            pass
    except (OSError, ValueError):
        return False
    return True


def _blocks(path: Path, checksum: IndexChecksum | None) -> Iterator[bytes]:
    """Yields an index's text, some at a time; raises at its end where that is not what the checksum says."""
    size = crc = 0
    bring(path)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            size += len(block)
            if checksum:
                crc = crc32c(block, crc)
            yield block
    if checksum not in (None, IndexChecksum(size, crc)):
        raise ValueError(f"{path} is not the index that was written")


def _read_parts(path: Path, checksum: IndexChecksum | None = None) -> Iterator[np.ndarray]:
    """Yields an index some lines at a time: int64 of shape (lines, 2), each frame where the one before ends."""
    end, rest = 0, b""
    for block in _blocks(path, checksum):
        whole, line_feed, rest = (rest + block).rpartition(b"\n")
        if line_feed:
            part = _parse(whole, path)
            if part[0, 0] != end or part[:, 1].min() < FRAMING or (np.diff(part[:, 0]) != part[:-1, 1]).any():
                raise ValueError(f"{path} is not an index: a frame does not start where the one before ends")
            end = int(part[-1].sum())
            yield part
    if rest:
        raise ValueError(f"{path} is not an index: its last line is cut")


def _parse(lines: bytes, path: Path) -> np.ndarray:
    numbers = np.empty((lines.count(b"\n") + 1, 2), np.int64)
    text = np.frombuffer(lines + b"\n", np.uint8)
    wrong = _scan_lines(address_of(text), text.size, address_of(numbers))
    if wrong >= 0:
        line = lines.split(b"\n", wrong + 1)[wrong][:_LINE].decode(errors="replace")
        raise ValueError(f"{path} is no index: line {line!r} is not 'offset size'")
    return numbers


@kernel("int64(int64, int64, int64)")
def _scan_lines(text, size, numbers):
    """Reads lines of two numbers each; returns the number of the first line that is something else, or -1."""
    at, line = np.int64(0), np.int64(0)
    while at < size:
        for field in range(2):
            value, digits = np.int64(0), np.int64(0)
            while at < size and digits < 19 and np.uint8(48) <= load_u8(text + at) <= np.uint8(57):
                value = value * 10 + np.int64(load_u8(text + at) - np.uint8(48))
                at += 1
                digits += 1
            end = np.uint8(10) if field else np.uint8(32)
            if digits == 0 or value < 0 or at == size or load_u8(text + at) != end:
                return line
            store_i64(numbers + line * 16 + field * 8, value)
            at += 1
        line += 1
    return np.int64(-1)
