"""Protobuf's wire format in plain Python: a decoder of tf.Examples and tf.SequenceExamples, for looking at a few.

Beside the kernels, because it needs no feature spec and gives what is there, of records of any origin.
"""

import struct
from collections.abc import Callable, Iterator
from typing import TypeVar

Values = list[int] | list[float] | list[bytes]
Steps = list[Values]
Decoded = dict[str, tuple[str, Values | Steps]]
"""Kind and values by feature; of a feature list, such as `steps of int64`, the values of each step."""

Part = TypeVar("Part", bytes, memoryview)
Value = TypeVar("Value")
KINDS = {1: "bytes", 2: "float32", 3: "int64"}


def decode_record(payload: bytes) -> Decoded | None:
    """Returns what a record holds, by feature name; None where it is neither tf.Example nor tf.SequenceExample.

    A field that these do not have makes a record another message: parsers skip it, but so take anything for an Example.
    """
    try:
        return {**entries_of(payload, 1, _feature), **entries_of(payload, 2, _feature_list)}
    except (ValueError, IndexError, KeyError, struct.error):
        return None


def entries_of(payload: Part, number: int, decode: Callable[[list[Part]], Value]) -> dict[str, Value]:
    """Returns the entries of a map: of the Features in field 1, or of the FeatureLists in field 2.

    Raises:
        ValueError: There is another field, or none ends where it must.
        IndexError: A number ends too early.
        KeyError: A field is of no known type.
    """
    entries = [entry for part in messages_of(payload, number, 2) for entry in messages_of(part, 1, 1)]
    return {b"".join(messages_of(entry, 1, 2)).decode(): decode(messages_of(entry, 2, 2)) for entry in entries}


def _feature_list(parts: list[bytes]) -> tuple[str, Steps]:
    steps = [_feature([feature]) for part in parts for feature in messages_of(part, 1, 1)]
    kinds = sorted({kind for kind, _ in steps})
    return f"steps of {' and '.join(kinds)}" if kinds else "steps", [values for _, values in steps]


def _feature(parts: list[bytes]) -> tuple[str, Values]:
    fields = [(KINDS[number], number, content) for part in parts for number, content in fields_of(part)]
    if not fields:
        return "bytes", []
    kind, number, content = fields[-1]
    if isinstance(content, int):
        raise ValueError("a list is not a number")  # noqa: TRY004 - the data's type, not the caller's
    return kind, _values(number, content)


def _values(kind: int, content: bytes) -> Values:
    if kind == 1:
        return messages_of(content, 1, 1)
    fields = list(fields_of(content))
    if any(number != 1 for number, _ in fields):
        raise ValueError("a list has one field")
    joined = b"".join(field if isinstance(field, bytes) else encode_varint(field) for _, field in fields)
    if kind == 2:
        return list(struct.unpack(f"<{len(joined) // 4}f", joined))
    return [_to_signed(value) for value in _varints(joined)]


def messages_of(data: Part, wanted: int, last: int) -> list[Part]:
    """Returns the contents of all fields of one number.

    Raises:
        ValueError: A field has a number beyond `last`, or does not hold bytes.
    """
    found = []
    for number, value in fields_of(data):
        if not 1 <= number <= last or isinstance(value, int):
            raise ValueError("no such field")
        if number == wanted:
            found.append(value)
    return found


def fields_of(data: Part) -> Iterator[tuple[int, Part | int]]:
    """Yields number and value of each field of a message: bytes, or an int for a varint."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        else:
            size = {1: 8, 5: 4}[wire]
        if at + size > len(data):
            raise ValueError("field runs over the end")
        yield tag >> 3, data[at : at + size]
        at += size


def encode_varint(value: int) -> bytes:
    """Returns a minimal varint of a number that is not negative."""
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
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


def _to_signed(value: int) -> int:
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value
