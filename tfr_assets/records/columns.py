"""Arrow columns → the encoder's table: what a column's memory looks like, as one line of numbers.

The types that differ only in name are brought to a few physical ones first (`physical`); no value becomes a Python
object.
"""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import SchemaError
from tfr_assets.records import encode as e
from tfr_assets.records.features import Feature, Kind
from tfr_assets.records.jit import PADDING, address_of
from tfr_assets.records.schema import is_list, physical_type, with_value_type
from tfr_assets.records.wire import encode_varint

_KINDS = {Kind.INT64: e.INT, Kind.FLOAT32: e.FLOAT, Kind.BYTES: e.BYTES}
_INT64_MAX = 2**63 - 1
_NO_OFFSETS = np.zeros(1, np.int64)


def column_of(batch: pa.RecordBatch, path: str) -> pa.Array:
    """Returns the column at `path`; a field of a struct is null where the struct is.

    Raises:
        SchemaError: The batch has no such column.
    """
    # a column's own name may hold a slash, so the longest name that matches comes first
    parts = path.split("/")
    for size in range(len(parts), 0, -1):
        name = "/".join(parts[:size])
        index = batch.schema.get_field_index(name)
        if index >= 0:
            array = batch.column(index)
            return array if size == len(parts) else _field_of(array, parts[size:], path)
    raise SchemaError(f"column {path!r} is missing; there are {', '.join(batch.schema.names)}")


def _field_of(array: pa.Array, parts: list[str], path: str) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_struct(array.type):
        for size in range(len(parts), 0, -1):
            index = array.type.get_field_index("/".join(parts[:size]))
            if index >= 0:
                field = array.flatten()[index]
                return field if size == len(parts) else _field_of(field, parts[size:], path)
    raise SchemaError(f"column {path!r} is missing")


def physical(array: pa.Array, feature: Feature, cast: pa.DataType | None) -> pa.Array:
    """Brings a column to a type whose memory the kernels know.

    Args:
        array: The column.
        feature: What it becomes; named in errors.
        cast: The type of values that the user asked for, or None.

    Raises:
        SchemaError: A value does not survive the cast the user asked for.
    """
    while isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        array = _without_view(array)
    try:
        if cast is not None:
            array = pc.cast(array, with_value_type(array.type, cast))
        wanted = physical_type(array.type)
        return array if array.type.equals(wanted) else pc.cast(array, wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaError(
            f"column {feature.column!r} of type {array.type} cannot be cast to {cast or physical_type(array.type)}: "
            f"{error}"
        ) from error


def _without_view(array: pa.Array) -> pa.LargeListArray:
    """Returns a list view as a list. Arrow's own cast gives invalid offsets where the view is sliced or has nulls."""
    starts = np.zeros(len(array) + 1, np.int64)
    np.cumsum(pc.fill_null(pc.list_value_length(array), 0), out=starts[1:])
    return pa.LargeListArray.from_arrays(pa.array(starts), array.flatten(), mask=array.is_null())


class Column:
    """One column's line of the encoder's table, and the memory it points into.

    Attributes:
        feature: What the column becomes.
    """

    def __init__(self, feature: Feature) -> None:
        self.feature = feature
        self._key, self._templates, self._step = _entry_templates(feature)
        self._held: list[object] = []

    def bind(self, array: pa.Array, first_row: int) -> list[int]:
        """Returns the line for a physical array, and keeps its memory alive until the next call.

        Args:
            array: As `physical` returns it.
            first_row: Row of the dataset that the array starts with, for messages.

        Raises:
            SchemaError: A value that a tf.Example cannot hold, named with column and row.
        """
        feature = self.feature
        if array.null_count and not feature.optional:
            raise SchemaError(
                f"column {feature.column!r} has a null in row {first_row + _first(pc.is_null(array))}, though the "
                "inventory counted none; materialize raw again"
            )
        line = [0] * e.FIELDS
        line[e.KIND] = _KINDS[feature.kind]
        line[e.KEY], line[e.KEY_SIZE] = address_of(self._key), self._key.size - PADDING
        line[e.TEMPLATES], line[e.TEMPLATE_STEP] = address_of(self._templates), self._step
        if array.null_count:
            validity = array.buffers()[0]
            line[e.VALIDITY], line[e.VALIDITY_BIT] = validity.address, array.offset
        values = self._bind_lists(line, array, first_row)
        self._bind_values(line, values, array, first_row)
        self._held = [array, values]
        return line

    def _bind_lists(self, line: list[int], array: pa.Array, first_row: int) -> pa.Array:
        """Fills in where each row's values start and stop; returns the values of all rows."""
        feature = self.feature
        if not is_list(array.type):
            line[e.STRIDE] = 1
            line[e.PATH] = _path(feature.kind, array.type)
            return array
        if _holds_null(array):
            raise SchemaError(
                f"column {feature.column!r} holds a null inside a list, at or after row {first_row}: "
                "a feature's list cannot. Fill or remove such values in the source, or drop the column"
            )
        if pa.types.is_fixed_size_list(array.type):
            line[e.STRIDE] = array.type.list_size
            start = array.offset * array.type.list_size
        else:
            self._check_lengths(array, first_row)
            width = 8 if pa.types.is_large_list(array.type) else 4
            line[e.OFFSETS], line[e.OFFSETS_WIDTH] = array.buffers()[1].address + array.offset * width, width
            line[e.STRIDE] = 1
            start = 0
        values = array.values
        while is_list(values.type):  # of a fixed size: `derive_spec` refuses ragged ones
            size = values.type.list_size
            line[e.STRIDE] *= size
            start = (start + values.offset) * size
            values = values.values
        return values.slice(start)

    def _check_lengths(self, array: pa.Array, first_row: int) -> None:
        shape = self.feature.shape
        if None in shape:
            return
        inner = array.type.value_type
        size = math.prod(length for length in shape if length is not None)
        while is_list(inner):
            size, inner = size // inner.list_size, inner.value_type
        wrong = pc.not_equal(pc.list_value_length(array), size)
        if pc.any(wrong).as_py():
            row = _first(wrong)
            raise SchemaError(
                f"column {self.feature.column!r} has {len(array[row])} values in row {first_row + row}, but its shape "
                f"{list(shape)} asks for {size}"
            )

    def _bind_values(self, line: list[int], values: pa.Array, array: pa.Array, first_row: int) -> None:
        """Fills in where the values lie, whatever their type."""
        data_type, buffers = values.type, values.buffers()
        if self.feature.kind is Kind.BYTES:
            if pa.types.is_fixed_size_binary(data_type):
                data, line[e.WIDTH] = buffers[1], data_type.byte_width
                start = values.offset * data_type.byte_width
            else:
                data, start = buffers[2], 0
                width = 8 if pa.types.is_large_string(data_type) or pa.types.is_large_binary(data_type) else 4
                line[e.STARTS_WIDTH] = width
                # without values Arrow may leave out even the first offset
                line[e.STARTS] = buffers[1].address + values.offset * width if buffers[1] else address_of(_NO_OFFSETS)
            if data is not None:
                line[e.VALUES], line[e.VALUES_END] = data.address + start, data.address + data.size
            return
        if buffers[1] is None:  # no values at all
            return
        if pa.types.is_boolean(data_type):
            line[e.VALUES], line[e.VALUE_BIT] = buffers[1].address, values.offset
            return
        if pa.types.is_uint64(data_type) and (largest := pc.max(_flat(array)).as_py() or 0) > _INT64_MAX:
            raise SchemaError(
                f"column {self.feature.column!r} of type uint64 holds {largest}, at or after row {first_row}, which is "
                "beyond int64, the only integer of a tf.Example. Cast the column to string or float64, or drop it"
            )
        line[e.WIDTH] = data_type.bit_width // 8
        line[e.UNSIGNED] = int(pa.types.is_unsigned_integer(data_type))
        line[e.VALUES] = buffers[1].address + values.offset * line[e.WIDTH]


def _path(kind: Kind, data_type: pa.DataType) -> int:
    if kind is Kind.BYTES:
        return e.ONE_BYTES
    wide = not pa.types.is_boolean(data_type) and data_type.bit_width == 64
    if kind is Kind.INT64:
        return e.ONE_INT64 if wide else e.ONE_INT
    return e.ONE_FLOAT64 if wide else e.ONE_FLOAT


def _first(mask: pa.Array) -> int:
    return int(pc.index(mask, True).as_py())


def _holds_null(array: pa.Array) -> bool:
    while is_list(array.type):
        array = array.flatten()  # leaves out what lies under null lists
        if array.null_count:
            return True
    return False


def _flat(array: pa.Array) -> pa.Array:
    """Returns the values of all rows, without those that lie under null lists or outside of a slice."""
    while is_list(array.type):
        array = array.flatten()
    return array


def _padded(content: bytes) -> np.ndarray:
    return np.frombuffer(content + bytes(PADDING), np.uint8)


def _entry_templates(feature: Feature) -> tuple[np.ndarray, np.ndarray, int]:
    """Returns the key's field, and for scalar numbers all of an entry but its value, by the value's size 0 … 10."""
    name = feature.name.encode()
    key = b"\x0a" + encode_varint(len(name)) + name
    tag = b"\x12" if feature.kind is Kind.FLOAT32 else b"\x1a"
    templates = []
    for size in range(11):
        content = b"\x0a" + encode_varint(size)
        body = tag + encode_varint(len(content) + size) + content
        entry = key + b"\x12" + encode_varint(len(body) + size) + body
        templates.append(b"\x0a" + encode_varint(len(entry) + size) + entry)
    step = -(-(8 + max(map(len, templates)) + 8) // 8) * 8
    lines = b"".join((len(t).to_bytes(8, "little") + t).ljust(step, b"\0") for t in templates)
    return _padded(key), _padded(lines), step
