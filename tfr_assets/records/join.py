"""Strings of bytes → one string, for readers that take them apart again themselves."""

import numpy as np

from tfr_assets.records.arrays import Strings
from tfr_assets.records.jit import address_of, copy_32, copy_bytes, kernel, load_i64, store_u8
from tfr_assets.records.jit import PADDING
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


def join_separated(strings: Strings) -> tuple[bytes, bytes] | None:
    """Returns all strings, each followed by a byte that none of them holds, and that byte; None if they hold all."""
    offsets = np.ascontiguousarray(strings.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    held = strings.data[first:last].tobytes()
    separator = next((byte for byte in _SEPARATORS if held.find(byte) < 0), None)
    if separator is None:
        return None
    count, data = len(offsets) - 1, np.ascontiguousarray(strings.data)
    target = np.empty(last - first + count + PADDING, np.uint8)
    _join(address_of(offsets), count, address_of(data), data.size, separator, address_of(target))
    return target[: last - first + count].tobytes(), bytes([separator])


def as_tensor_proto(strings: Strings) -> bytes:
    """Returns a TensorProto of all strings, of one dimension, as `tf.io.parse_tensor` takes it."""
    bounds = strings.offsets.tolist()
    pairs = zip(bounds[:-1], bounds[1:], strict=True)
    dim = _field(0x12, b"\x08" + encode_varint(len(bounds) - 1))
    values = [_field(0x42, strings.data[start:stop].tobytes()) for start, stop in pairs]
    return b"".join([b"\x08\x07", _field(0x12, dim), *values])


def _field(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + encode_varint(len(content)) + content
