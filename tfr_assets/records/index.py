"""The offset index: one text line `offset size` a record, framing included, as NVIDIA DALI and `tfrecord` read it.

For a compressed file, offsets count in the decompressed stream.
"""

from pathlib import Path

import numpy as np

from tfr_assets.records.jit import address_of, inlined, kernel, load_i64, store_u8

_FRAMING = 16
_LINE = 42  # two numbers of at most twenty digits, a space and a line feed


@inlined
def _put_number(address, number):
    digits = 1
    rest = number // 10
    while rest:
        digits += 1
        rest //= 10
    for k in range(digits - 1, -1, -1):
        store_u8(address + k, np.uint8(48 + number % 10))
        number //= 10
    return address + digits


@kernel("int64(int64, int64, int64, int64)")
def _format(sizes, count, offset, target):
    address = target
    for i in range(count):
        size = load_i64(sizes + i * 8)
        address = _put_number(address, offset)
        store_u8(address, np.uint8(32))
        address = _put_number(address + 1, size)
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
    text = np.empty(sizes.size * _LINE, np.uint8)
    size = _format(address_of(sizes), sizes.size, offset, address_of(text))
    return text[:size].data


def read_index(path: Path) -> np.ndarray:
    """Returns an index as int64 of shape (records, 2): offset and size of each frame.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no index.
    """
    text = path.read_text(encoding="ascii")
    if not text:
        return np.empty((0, 2), np.int64)
    numbers = np.fromstring(text, np.int64, sep=" ")
    lines = text.count("\n")
    if numbers.size != 2 * lines or text.count(" ") != lines or not text.endswith("\n"):
        raise ValueError(f"{path} is no index: a line is not 'offset size'")
    found = numbers.reshape(-1, 2)
    if found[0, 0] != 0 or found[:, 1].min() < _FRAMING or (np.diff(found[:, 0]) != found[:-1, 1]).any():
        raise ValueError(f"{path} is no index: a frame does not start where the one before ends")
    return found


def read_sizes(path: Path, records: int, payload_bytes: int) -> np.ndarray:
    """Returns the frames' sizes from the index of a file that holds so many records and so many bytes in them.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no index, or another file's.
    """
    sizes = np.ascontiguousarray(read_index(path)[:, 1])
    if len(sizes) != records or int(sizes.sum()) != payload_bytes + _FRAMING * records:
        raise ValueError(f"{path} is another file's index")
    return sizes


def index_fits(path: Path, records: int, payload_bytes: int) -> bool:
    """Tells whether `read_sizes` would raise nothing."""
    try:
        read_sizes(path, records, payload_bytes)
    except (FileNotFoundError, ValueError):
        return False
    return True
