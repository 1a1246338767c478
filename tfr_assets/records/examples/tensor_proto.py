"""TensorFlow's TensorProto, as `tf.io.serialize_tensor` writes it: its types, and all of a message but its values.

TensorProto  08 dtype   12 │size│ shape   22 │size│ values      numbers: little-endian, nothing where there are none
(42 │size│ value)*    strings
shape        (12 │size│ dim)*             dim   08 varint, nothing for 0
"""

from collections.abc import Iterable

import pyarrow as pa

from tfr_assets.records.examples.wire import encode_varint

STRING = 7
_NUMBERS = {
    "float": 1, "double": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10, "uint16": 17,
    "halffloat": 19, "uint32": 22, "uint64": 23, "date32": 3, "time32": 3,
}  # fmt: skip
_TEMPORAL = ("date64", "time64", "timestamp", "duration")


def dtype_number(value_type: str) -> int:
    """Returns TensorFlow's number for a type of values in Arrow's words; anything but a number is a string."""
    return _NUMBERS.get(value_type, _NUMBERS["int64"] if value_type in _TEMPORAL else STRING)


def stored_type(data_type: pa.DataType) -> pa.DataType:
    """Returns the Arrow type whose memory holds values as a TensorProto does: bytes for bool, text for decimals."""
    if pa.types.is_boolean(data_type):
        return pa.uint8()
    if pa.types.is_decimal(data_type):
        return pa.string()
    if pa.types.is_string_view(data_type):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(data_type) else data_type


def header(dtype: int, shape: Iterable[int], content: int) -> bytes:
    """Returns what stands before the values of a tensor of numbers.

    Args:
        dtype: TensorFlow's number for the type.
        shape: The tensor's.
        content: Bytes of all values; at least one.
    """
    dims = b"".join(_field(0x12, b"\x08" + encode_varint(size)) for size in shape)
    return b"\x08" + encode_varint(dtype) + _field(0x12, dims) + b"\x22" + encode_varint(content)


def _field(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + encode_varint(len(content)) + content
