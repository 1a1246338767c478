"""Strings of bytes → one string, for readers that take it apart again themselves."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tfr_assets.records.arrays import Strings
from tfr_assets.records.jit import PADDING, address_of, copy_32, copy_bytes, kernel, load_i64, store_u8
from tfr_assets.records.wire import encode_varint

_SEPARATORS = (0xFF, 0x00, 0xC0, 0x1F, 0xFE, 0x01)  # UTF-8 has no ff, and hardly any text a zero


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def _join(offsets, count, data, stop, separator, target):
    start = load_i64(offsets)
    for i in range(count):
        end = load_i64(offsets + i * 8 + 8)
        if end - start <= 32 and start + 32 <= stop:
            copy_32(target, data + start)
        else:
            copy_bytes(target, data + start, end - start)
        target += end - start
        store_u8(target, np.uint8(separator))
        target += 1
        start = end
    return target


def join_strings(columns: Sequence[Strings]) -> tuple[bytes, bytes]:
    """Returns the strings of all columns as one, and what tells them apart.

    Returns:
        The strings, each followed by a byte that none of them holds, and that byte. If they hold all bytes that are
        tried: a TensorProto of them, of one dimension, and an empty string.
    """
    held = [column.data[column.offsets[0] : column.offsets[-1]].tobytes() for column in columns]
    separator = next((byte for byte in _SEPARATORS if all(data.find(byte) < 0 for data in held)), None)
    if separator is None:
        return _as_tensor_proto(columns), b""
    total = sum(map(len, held)) + sum(len(column.offsets) - 1 for column in columns)
    target = np.empty(total + PADDING, np.uint8)
    at = address_of(target)
    for column in columns:
        offsets, data = np.ascontiguousarray(column.offsets), column.data
        at = _join(address_of(offsets), len(offsets) - 1, address_of(data), data.size, separator, at)
    return target[:total].tobytes(), bytes([separator])


def _as_tensor_proto(columns: Sequence[Strings]) -> bytes:
    values, count = [], 0
    for column in columns:
        bounds = column.offsets.tolist()
        count += len(bounds) - 1
        values += [_field(0x42, column.data[start:stop].tobytes()) for start, stop in pairwise(bounds)]
    shape = _field(0x12, b"\x08" + encode_varint(count))
    return b"".join([b"\x08\x07", _field(0x12, shape), *values])


def _field(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + encode_varint(len(content)) + content
