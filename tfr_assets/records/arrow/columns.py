"""Arrow columns → arrays whose memory the kernels know: found by path, cast, and of few types.

The types that differ only in name are brought to a few physical ones; no value becomes a Python object.
"""

import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import SchemaError
from tfr_assets.records.arrow.nested import list_starts, plain
from tfr_assets.records.schema.arrow_types import is_list, physical_type, with_value_type


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
    if is_list(array.type):
        return _lists_of(array, _field_of(_values_of(array), parts, path))
    if pa.types.is_struct(array.type):
        for size in range(len(parts), 0, -1):
            index = array.type.get_field_index("/".join(parts[:size]))
            if index >= 0:
                field = array.flatten()[index]
                return field if size == len(parts) else _field_of(field, parts[size:], path)
    raise SchemaError(f"column {path!r} is missing")


def _values_of(array: pa.Array) -> pa.Array:
    """Returns what lists hold, with what lies under nulls only where its place is needed."""
    if not pa.types.is_fixed_size_list(array.type):
        return array.flatten()
    return array.values.slice(array.offset * array.type.list_size, len(array) * array.type.list_size)


def _lists_of(array: pa.Array, values: pa.Array) -> pa.Array:
    """Returns lists as those of `array`, of other values."""
    null = array.is_null() if array.null_count else None
    if pa.types.is_fixed_size_list(array.type):
        return pa.FixedSizeListArray.from_arrays(values, array.type.list_size, mask=null)
    return pa.LargeListArray.from_arrays(pa.array(list_starts(array)), values, mask=null)


def physical(array: pa.Array, cast: pa.DataType | None, column: str) -> pa.Array:
    """Brings an array to a type whose memory the kernels know.

    Args:
        array: A column, or a part of it.
        cast: The type of values that the user asked for, or None.
        column: Named in errors.

    Raises:
        SchemaError: A value does not survive the cast the user asked for.
    """
    array = without_views(array)
    if cast is not None:
        array = cast_array(array, with_value_type(array.type, cast), column)
    return cast_array(array, physical_type(array.type), column)


def without_views(array: pa.Array) -> pa.Array:
    """Returns the array itself, or lists in the order of their rows for a list view.

    Arrow's own cast of views gives invalid offsets where the view is sliced or has nulls.
    """
    array = plain(array)
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        return _lists_of(array, array.flatten())
    return array


def cast_array(array: pa.Array, data_type: pa.DataType, column: str) -> pa.Array:
    """Returns the array as another type.

    Raises:
        SchemaError: A value does not survive that; the message names the column.
    """
    if array.type.equals(data_type):
        return array
    try:
        return pc.cast(array, data_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaError(f"column {column!r} of type {array.type} cannot be cast to {data_type}: {error}") from error
