"""An Arrow array → its line of the encoder's table: addresses, widths and offsets of the memory that it is in."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import SchemaError
from tfr_assets.records.arrow.nested import null_inside
from tfr_assets.records.examples.wire import encode_varint
from tfr_assets.records.kernels import column_table as t
from tfr_assets.records.kernels.jit import PADDING, address_of
from tfr_assets.records.schema.arrow_types import is_list
from tfr_assets.records.schema.features import Feature, Kind

_NO_OFFSETS = np.zeros(1, np.int64)


class Key:
    """What an entry of one feature begins with; lines point into it.

    Attributes:
        field: The key's field.
        templates: For scalar numbers, all of an entry but its value, by the value's size 0 … 10.
        step: Bytes from one template to the next.
    """

    def __init__(self, feature: Feature) -> None:
        name = feature.name.encode()
        key = b"\x0a" + encode_varint(len(name)) + name
        tag = b"\x12" if feature.kind is Kind.FLOAT32 else b"\x1a"
        templates = []
        for size in range(11):
            content = b"\x0a" + encode_varint(size)
            body = tag + encode_varint(len(content) + size) + content
            entry = key + b"\x12" + encode_varint(len(body) + size) + body
            templates.append(b"\x0a" + encode_varint(len(entry) + size) + entry)
        self.step = -(-(8 + max(map(len, templates)) + 8) // 8) * 8
        lines = b"".join((len(t).to_bytes(8, "little") + t).ljust(self.step, b"\0") for t in templates)
        self.field, self.templates = _pad(key), _pad(lines)

    def bind(self, line: list[int]) -> None:
        """Fills in where it lies."""
        line[t.KEY], line[t.KEY_SIZE] = address_of(self.field), self.field.size - PADDING
        line[t.TEMPLATES], line[t.TEMPLATE_STEP] = address_of(self.templates), self.step


def line_of(array: pa.Array, shape: tuple[int | None, ...], column: str, first_row: int) -> list[int]:
    """Returns the line of an array, without key and steps.

    Args:
        array: Scalars, or lists of which none but the outermost vary in length; of a physical type. It stays alive.
        shape: That of each element. Without None, lists of varying length are compared with it.
        column: Named in errors.
        first_row: Row of the dataset that the array starts with, for errors.

    Raises:
        SchemaError: There is a null inside a list, or a list of another length than its shape says.
    """
    line = [0] * t.FIELDS
    line[t.STRIDE] = 1
    if array.null_count:
        line[t.VALIDITY], line[t.VALIDITY_BIT] = array.buffers()[0].address, array.offset
    if is_list(array.type):
        _bind_values(line, _bind_lists(line, array, shape, column, first_row))
    else:
        _bind_values(line, array)
        line[t.PATH] = _path(line)
    return line


def first_true(mask: pa.Array) -> int:
    """Returns the index of the first element that is true; there is one."""
    return int(pc.index(mask, True).as_py())


def flat_values(array: pa.Array) -> pa.Array:
    """Returns the values of all rows, without those that lie under null lists or outside of a slice."""
    while is_list(array.type):
        array = array.flatten()
    return array


def _bind_lists(
    line: list[int], array: pa.Array, shape: tuple[int | None, ...], column: str, first_row: int
) -> pa.Array:
    """Fills in where each element's values start and stop; returns the values of all."""
    if _holds_null(array):
        raise null_inside(column, first_row)
    start = 0
    if pa.types.is_fixed_size_list(array.type):
        line[t.STRIDE] = array.type.list_size
        start = array.offset * array.type.list_size
    else:
        if None not in shape:
            _check_lengths(array, shape, column, first_row)
        width = 8 if pa.types.is_large_list(array.type) else 4
        line[t.OFFSETS], line[t.OFFSETS_WIDTH] = array.buffers()[1].address + array.offset * width, width
    values = array.values
    while is_list(values.type):  # of a fixed size
        size = values.type.list_size
        line[t.STRIDE] *= size
        start = (start + values.offset) * size
        values = values.values
    return values.slice(start)


def _holds_null(array: pa.Array) -> bool:
    while is_list(array.type):
        array = array.flatten()  # leaves out what lies under null lists
        if array.null_count:
            return True
    return False


def _check_lengths(array: pa.Array, shape: tuple[int | None, ...], column: str, first_row: int) -> None:
    inner = array.type.value_type
    size = math.prod(length for length in shape if length is not None)
    while is_list(inner):
        size, inner = size // inner.list_size, inner.value_type
    wrong = pc.not_equal(pc.list_value_length(array), size)
    if pc.any(wrong).as_py():
        row = first_true(wrong)
        raise SchemaError(
            f"column {column!r} has {len(array[row])} values in row {first_row + row}, but its shape "
            f"{list(shape)} asks for {size}"
        )


def _bind_values(line: list[int], values: pa.Array) -> None:
    """Fills in where the values lie, whatever their type."""
    data_type, buffers = values.type, values.buffers()
    line[t.KIND] = _kind(data_type)
    if line[t.KIND] == t.BYTES:
        if pa.types.is_fixed_size_binary(data_type):
            data, line[t.WIDTH] = buffers[1], data_type.byte_width
            start = values.offset * data_type.byte_width
        else:
            data, start = buffers[2], 0
            width = 8 if pa.types.is_large_string(data_type) or pa.types.is_large_binary(data_type) else 4
            line[t.STARTS_WIDTH] = width
            # without values Arrow may leave out even the first offset
            line[t.STARTS] = buffers[1].address + values.offset * width if buffers[1] else address_of(_NO_OFFSETS)
        if data is not None:
            line[t.VALUES], line[t.VALUES_END] = data.address + start, data.address + data.size
        return
    if buffers[1] is None:  # no values at all
        return
    if pa.types.is_boolean(data_type):
        line[t.VALUES], line[t.VALUE_BIT] = buffers[1].address, values.offset
        return
    line[t.WIDTH] = data_type.bit_width // 8
    line[t.UNSIGNED] = int(pa.types.is_unsigned_integer(data_type))
    line[t.VALUES] = buffers[1].address + values.offset * line[t.WIDTH]


def _kind(data_type: pa.DataType) -> int:
    if pa.types.is_floating(data_type):
        return t.FLOAT
    is_int = pa.types.is_integer(data_type) or pa.types.is_boolean(data_type) or pa.types.is_temporal(data_type)
    return t.INT if is_int else t.BYTES


def _path(line: list[int]) -> int:
    """Returns the shortest way to write a single value."""
    if line[t.KIND] == t.BYTES:
        return t.ONE_BYTES
    if line[t.KIND] == t.INT:
        return t.ONE_INT64 if line[t.WIDTH] == 8 else t.ONE_INT
    return t.ONE_FLOAT64 if line[t.WIDTH] == 8 else t.ONE_FLOAT


def _pad(content: bytes) -> np.ndarray:
    return np.frombuffer(content + bytes(PADDING), np.uint8)
