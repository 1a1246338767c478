"""A plain decoder of tf.Examples, for looking at a few records of any TFRecord file. Not for reading datasets."""

import struct
from collections.abc import Iterator

Values = list[int] | list[float] | list[bytes]
_KINDS = {1: "bytes", 2: "float32", 3: "int64"}


def decode_example(payload: bytes) -> dict[str, tuple[str, Values]] | None:
    """Returns kind and values of each feature, by name; None where the payload is no tf.Example."""
    try:
        features = [value for number, _, value in _fields(payload) if number == 1]
        return dict(_entry(entry) for part in features for number, _, entry in _fields(part) if number == 1)
    except (ValueError, IndexError, TypeError, KeyError, struct.error):
        return None


def _entry(entry: bytes) -> tuple[str, tuple[str, Values]]:
    fields = {number: value for number, _, value in _fields(entry)}
    feature = list(_fields(fields.get(2, b"")))
    name = fields.get(1, b"").decode()
    if not feature:
        return name, ("bytes", [])
    number, _, content = feature[-1]
    return name, (_KINDS[number], _values(number, content))


def _values(kind: int, content: bytes) -> Values:
    values: list = []
    for number, wire, value in _fields(content):
        if number != 1:
            continue
        if kind == 1:
            values.append(value)
        elif kind == 2:
            values += struct.unpack(f"<{len(value) // 4}f", value)
        elif wire == 0:
            values.append(_signed(value))
        else:
            values += [_signed(number) for number in _varints(value)]
    return values


def _fields(data: bytes) -> Iterator[tuple[int, int, "bytes | int"]]:
    """Yields number, wire type and value of each field of a message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, wire, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        else:
            size = {1: 8, 5: 4}[wire]
        if at + size > len(data):
            raise ValueError("field runs over the end")
        yield tag >> 3, wire, data[at : at + size]
        at += size


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint is too long")


def _signed(value: int) -> int:
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value
