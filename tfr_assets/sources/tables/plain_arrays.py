"""Arrow's many ways to hold the same values → the plain one, which every kernel and Parquet can hold.

Dictionaries, run-end encoding and views are how values are stored, not what they are. Arrow's own casts do not remove
all of them (of pyarrow 26: no dictionary of views or lists, and list views wrongly), so these are taken apart here.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Returns the type without dictionaries, run-end encoding and views, at any depth."""
    if pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    if pa.types.is_struct(type_):
        return pa.struct([plain_field(child) for child in type_])
    if pa.types.is_list(type_) or pa.types.is_list_view(type_):
        return pa.list_(plain_field(type_.value_field))
    if pa.types.is_large_list(type_) or pa.types.is_large_list_view(type_):
        return pa.large_list(plain_field(type_.value_field))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(plain_field(type_.value_field), type_.list_size)
    if pa.types.is_map(type_):
        return pa.map_(plain_type(type_.key_type), plain_type(type_.item_type), type_.keys_sorted)
    return type_


def plain_field(field: pa.Field) -> pa.Field:
    """Returns the field with its plain type, and without its metadata and "not null" mark."""
    return pa.field(field.name, plain_type(field.type))


def plain_array(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Returns the values as an array of a plain type.

    Args:
        array: Of any type whose `plain_type` is `type_`, or nulls.
        type_: The type wanted.
    """
    kind = array.type
    if kind == type_:
        return array
    if pa.types.is_null(kind):
        return pa.nulls(len(array), type_)
    if pa.types.is_dictionary(kind):
        return plain_array(array.dictionary, type_).take(array.indices)
    if pa.types.is_run_end_encoded(kind):
        return plain_array(pc.run_end_decode(array), type_)
    if not _is_encoded(kind):
        return array.cast(type_)
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        children = [plain_array(child, f.type) for child, f in zip(array.flatten(), type_, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
    if pa.types.is_fixed_size_list(kind):
        values = array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)
        return pa.FixedSizeListArray.from_arrays(plain_array(values, type_.value_type), type=type_, mask=mask)
    if pa.types.is_map(kind):
        return array.cast(type_)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    values = plain_array(array.flatten(), type_.value_type)
    if pa.types.is_large_list(type_):
        return pa.LargeListArray.from_arrays(pa.array(offsets), values, type=type_, mask=mask)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=type_, mask=mask)


def _is_encoded(type_: pa.DataType) -> bool:
    """Whether values are stored, at any depth, in a way that Arrow's casts do not remove."""
    encodings = (
        *(pa.types.is_dictionary, pa.types.is_run_end_encoded),
        *(pa.types.is_list_view, pa.types.is_large_list_view),
    )
    if any(is_encoding(type_) for is_encoding in encodings):
        return True
    return pa.types.is_nested(type_) and any(_is_encoded(type_.field(index).type) for index in range(type_.num_fields))
