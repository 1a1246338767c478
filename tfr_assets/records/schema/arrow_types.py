"""Arrow's types as they are seen here: lists and what is in them, structs that are tensors, what kernels know."""

from collections.abc import Iterator

import pyarrow as pa

from tfr_assets.errors import ConfigError

# a tensor whose shape varies, as Arrow's own extension type of that name stores it
TENSOR_DATA, TENSOR_SHAPE = "data", "shape"


def storage_type(data_type: pa.DataType) -> pa.DataType:
    """Returns the type without extensions and dictionaries around it."""
    while True:
        if isinstance(data_type, pa.BaseExtensionType):
            data_type = data_type.storage_type
        elif pa.types.is_dictionary(data_type):
            data_type = data_type.value_type
        else:
            return data_type


def value_type(data_type: pa.DataType) -> pa.DataType:
    """Returns the type of the values inside dictionaries, extensions and lists."""
    data_type = storage_type(data_type)
    while is_list(data_type):
        data_type = storage_type(data_type.value_type)
    return data_type


def is_list(data_type: pa.DataType) -> bool:
    """Whether a type is a list of any sort."""
    return (
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
        or pa.types.is_list_view(data_type)
        or pa.types.is_large_list_view(data_type)
    )


def is_tensor(data_type: pa.DataType) -> bool:
    """Whether a type is a tensor of varying shape: a struct of `data`, a flat list, and `shape`, of integers."""
    data_type = storage_type(data_type)
    if not pa.types.is_struct(data_type) or sorted(field.name for field in data_type) != [TENSOR_DATA, TENSOR_SHAPE]:
        return False
    data, shape = data_type.field(TENSOR_DATA).type, data_type.field(TENSOR_SHAPE).type
    return (
        is_list(data)
        and not is_list(storage_type(data.value_type))
        and not pa.types.is_nested(storage_type(data.value_type))
        and is_list(shape)
        and pa.types.is_integer(shape.value_type)
    )


def sizes_of(data_type: pa.DataType) -> tuple[int | None, ...]:
    """Returns the sizes of nested lists from the outside in, None where they vary; `()` for anything else."""
    data_type = storage_type(data_type)
    if not is_list(data_type):
        return ()
    size = data_type.list_size if pa.types.is_fixed_size_list(data_type) else None
    return (size, *sizes_of(data_type.value_type))


def list_like(data_type: pa.DataType, values: pa.DataType) -> pa.DataType:
    """Returns a list of `values`: of a fixed size or with large offsets, where `data_type` is."""
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(values, data_type.list_size)
    if pa.types.is_large_list(data_type) or pa.types.is_large_list_view(data_type):
        return pa.large_list(values)
    return pa.list_(values)


def with_value_type(data_type: pa.DataType, new: pa.DataType) -> pa.DataType:
    """Returns `data_type` with the values inside its lists replaced by `new`."""
    if isinstance(data_type, pa.BaseExtensionType):
        return with_value_type(data_type.storage_type, new)
    return list_like(data_type, with_value_type(data_type.value_type, new)) if is_list(data_type) else new


def physical_type(data_type: pa.DataType) -> pa.DataType:
    """Returns the type that a value's column is converted to before it is encoded."""
    data_type = storage_type(data_type)
    if is_list(data_type):
        return with_value_type(data_type, physical_type(value_type(data_type)))
    if pa.types.is_float16(data_type):
        return pa.float32()
    if pa.types.is_decimal(data_type):
        return pa.string()
    if pa.types.is_string_view(data_type):
        return pa.large_string()
    if pa.types.is_binary_view(data_type):
        return pa.large_binary()
    return data_type


def cast_type(name: str, column: str) -> pa.DataType:
    """Returns the Arrow type that a column is cast to, from its name, such as `float32` or `timestamp[us]`.

    Raises:
        ConfigError: Arrow knows no such name.
    """
    try:
        return pa.type_for_alias(name)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"features.cast: {name!r} of column {column!r} is not an Arrow type; use one of int8 … int64, "
            "uint8 … uint64, float16, float32, float64, bool, string, binary, date32, timestamp[us]"
        ) from error


def leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yields path and type of every column; structs, and lists of them, are replaced by their fields."""
    for field in schema:
        yield from _leaves(field.name, field.type, inside=False)


def _leaves(path: str, data_type: pa.DataType, inside: bool) -> Iterator[tuple[str, pa.DataType]]:
    plain = data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type
    if pa.types.is_struct(plain) and (inside or not is_tensor(plain)):
        for field in plain:
            yield from _leaves(f"{path}/{field.name}", field.type, inside)
    elif is_list(plain) and pa.types.is_struct(value_type(plain)):
        for inner, field_type in _leaves(path, plain.value_type, inside=True):
            yield inner, list_like(plain, field_type)
    else:
        yield path, data_type
