"""Arrow schema + a dataset's options → the feature spec; the table in `records.features` says what becomes what."""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from tfr_assets.errors import ConfigError, SchemaError
from tfr_assets.records.features import Feature, FeatureOptions, FeatureSpec, Kind


def value_type(data_type: pa.DataType) -> pa.DataType:
    """Returns the type of the values inside dictionaries, extensions and lists."""
    while True:
        if isinstance(data_type, pa.BaseExtensionType):
            data_type = data_type.storage_type
        elif pa.types.is_dictionary(data_type) or is_list(data_type):
            data_type = data_type.value_type
        else:
            return data_type


def is_list(data_type: pa.DataType) -> bool:
    """Tells whether a type is a list of any sort."""
    return (
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
        or pa.types.is_list_view(data_type)
        or pa.types.is_large_list_view(data_type)
    )


def with_value_type(data_type: pa.DataType, new: pa.DataType) -> pa.DataType:
    """Returns `data_type` with the values inside its lists replaced by `new`."""
    if isinstance(data_type, pa.BaseExtensionType):
        return with_value_type(data_type.storage_type, new)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(with_value_type(data_type.value_type, new), data_type.list_size)
    if pa.types.is_list(data_type) or pa.types.is_list_view(data_type):
        return pa.list_(with_value_type(data_type.value_type, new))
    if pa.types.is_large_list(data_type) or pa.types.is_large_list_view(data_type):
        return pa.large_list(with_value_type(data_type.value_type, new))
    return new


def physical_type(data_type: pa.DataType) -> pa.DataType:
    """Returns the type that a value's column is converted to before it is encoded."""
    if isinstance(data_type, pa.BaseExtensionType):
        return physical_type(data_type.storage_type)
    if pa.types.is_dictionary(data_type):
        return physical_type(data_type.value_type)
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


def parse_type(name: str) -> pa.DataType:
    """Returns the Arrow type of a name such as `float32` or `timestamp[us]`.

    Raises:
        ConfigError: Arrow knows no such name.
    """
    try:
        return pa.type_for_alias(name)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"{name!r} is no Arrow type; use one of int8 … int64, uint8 … uint64, float16, float32, float64, bool, "
            "string, binary, date32, timestamp[us]"
        ) from error


def leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yields path and type of every column, structs replaced by their fields."""

    def walk(path: str, data_type: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
        storage = data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type
        if pa.types.is_struct(storage):
            for field in storage:
                yield from walk(f"{path}/{field.name}", field.type)
        else:
            yield path, data_type

    for field in schema:
        yield from walk(field.name, field.type)


def derive_spec(
    schema: pa.Schema, null_counts: Mapping[str, int | None], options: FeatureOptions | None = None
) -> FeatureSpec:
    """Returns the features that records of this schema have.

    Args:
        schema: The table's.
        null_counts: Nulls by path of a column; one that is missing or None may have some.
        options: What to drop, rename, cast, shape and fill.

    Raises:
        SchemaError: A column that a tf.Example cannot hold, or two features of one name.
        ConfigError: The options name a column that is not there, or ask for what cannot be.
    """
    options = options or FeatureOptions()
    columns = dict(_unique(leaves(schema)))
    for name, chosen in vars(options).items():
        _check_columns(name, chosen, schema, columns, options.rename)
    dropped = set(options.drop)
    structs = dropped - columns.keys()
    features = [
        _feature(path, data_type, null_counts.get(path) != 0, options)
        for path, data_type in columns.items()
        if path not in dropped and not _is_under(path, structs)
    ]
    if not features:
        raise ConfigError("features.drop leaves no column; keep at least one")
    by_name: dict[str, Feature] = {}
    for feature in features:
        if (other := by_name.setdefault(feature.name, feature)) is not feature:
            raise SchemaError(
                f"columns {other.column!r} and {feature.column!r} would both become the feature {feature.name!r}; "
                "rename one of them under features.rename"
            )
    # 0xff, which no UTF-8 holds, puts a name behind those that it begins: so does protobuf's runtime for Python
    return FeatureSpec(tuple(sorted(features, key=lambda feature: feature.name.encode() + b"\xff")))


def _unique(columns: Iterable[tuple[str, pa.DataType]]) -> Iterator[tuple[str, pa.DataType]]:
    seen: set[str] = set()
    for path, data_type in columns:
        if path in seen:
            raise SchemaError(f"two columns are named {path!r}; rename one of them in the source")
        seen.add(path)
        yield path, data_type


def _is_under(path: str, structs: set[str]) -> bool:
    """Whether a path lies in one of `structs`."""
    parts = path.split("/")
    return any("/".join(parts[:size]) in structs for size in range(1, len(parts)))


def _check_columns(
    option: str,
    chosen: Iterable[str],
    schema: pa.Schema,
    columns: Mapping[str, pa.DataType],
    renames: Mapping[str, str],
) -> None:
    known = set(columns)
    if option == "drop":  # structs, too
        known |= set(schema.names) | {path[:at] for path in columns for at, char in enumerate(path) if char == "/"}
    for column in chosen:
        if column not in known:
            before = [path for path, renamed in renames.items() if renamed == column]
            close = before or difflib.get_close_matches(column, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"columns are {', '.join(columns)}"
            raise ConfigError(f"features.{option}: there is no column {column!r}; {hint}")


def _feature(path: str, data_type: pa.DataType, optional: bool, options: FeatureOptions) -> Feature:
    cast = options.cast.get(path)
    arrow_type = with_value_type(data_type, parse_type(cast)) if cast else data_type
    kind = _kind(path, value_type(arrow_type), data_type)
    shape = _shape(path, data_type)
    if (wanted := options.shape.get(path)) is not None:
        shape = _fixed_shape(path, data_type, shape, tuple(wanted))
    fill = options.fill.get(path)
    if fill is not None:
        _check_fill(path, kind, shape, fill)
    name = options.rename.get(path, path)
    if not name:
        raise ConfigError(f"features.rename: column {path!r} would become a feature without a name; give it one here")
    return Feature(name, kind, shape, path, str(arrow_type), optional, fill)


def _kind(path: str, values: pa.DataType, data_type: pa.DataType) -> Kind:
    if pa.types.is_integer(values) or pa.types.is_boolean(values):
        return Kind.INT64
    if pa.types.is_temporal(values) and not pa.types.is_interval(values):
        return Kind.INT64
    if pa.types.is_floating(values):
        return Kind.FLOAT32
    if (
        pa.types.is_string(values)
        or pa.types.is_large_string(values)
        or pa.types.is_string_view(values)
        or pa.types.is_binary(values)
        or pa.types.is_large_binary(values)
        or pa.types.is_binary_view(values)
        or pa.types.is_fixed_size_binary(values)
        or pa.types.is_decimal(values)
    ):
        return Kind.BYTES
    if pa.types.is_null(values):
        raise SchemaError(
            f"column {path!r} has no value at all, so that its type is unknown; name one under features.cast, or drop "
            "the column under features.drop"
        )
    raise SchemaError(
        f"column {path!r} of type {data_type} cannot become a feature: a tf.Example holds numbers, strings, bytes and "
        "lists of them. Convert it in the source, or drop it under features.drop"
    )


def _shape(path: str, data_type: pa.DataType) -> tuple[int | None, ...]:
    if isinstance(data_type, pa.FixedShapeTensorType):
        if data_type.permutation not in (None, list(range(len(data_type.shape)))):
            raise SchemaError(
                f"column {path!r} of type {data_type} has permuted dimensions; store it in row-major order"
            )
        return tuple(data_type.shape)
    if isinstance(data_type, pa.BaseExtensionType):
        return _shape(path, data_type.storage_type)
    if pa.types.is_dictionary(data_type):
        return _shape(path, data_type.value_type)
    if not is_list(data_type):
        return ()
    inner = _shape(path, data_type.value_type)
    if None in inner:
        raise SchemaError(
            f"column {path!r} of type {data_type} is a list of lists of varying length, which a tf.Example cannot "
            "hold; give the inner lists a fixed size, or drop it under features.drop"
        )
    if not pa.types.is_fixed_size_list(data_type):
        return (None, *inner)
    if data_type.list_size == 0:
        raise SchemaError(f"column {path!r} of type {data_type} never holds a value; drop it under features.drop")
    return (data_type.list_size, *inner)


def _fixed_shape(
    path: str, data_type: pa.DataType, shape: tuple[int | None, ...], wanted: tuple[int, ...]
) -> tuple[int, ...]:
    if not shape:
        raise ConfigError(f"features.shape: column {path!r} of type {data_type} is no list")
    if not wanted or any(size < 1 for size in wanted):
        raise ConfigError(f"features.shape: {list(wanted)} of column {path!r} must be positive sizes, such as [28, 28]")
    inner, values = math.prod(size for size in shape if size is not None), math.prod(wanted)
    if values % inner if None in shape else values != inner:
        raise ConfigError(
            f"features.shape: {list(wanted)} of column {path!r} has {values} values, but its type {data_type} "
            f"holds {inner}"
        )
    return wanted


def _check_fill(path: str, kind: Kind, shape: tuple[int | None, ...], fill: object) -> None:
    if None in shape:
        raise ConfigError(
            f"features.fill: column {path!r} is a list of varying length; where it is null, readers see an empty list"
        )
    fits = {
        Kind.INT64: isinstance(fill, int) and not isinstance(fill, bool) and -(2**63) <= fill < 2**63,
        Kind.FLOAT32: isinstance(fill, int | float) and not isinstance(fill, bool),
        Kind.BYTES: isinstance(fill, str),
    }
    if not fits[kind]:
        raise ConfigError(f"features.fill: {fill!r} is no value for column {path!r}, which becomes {kind.value}")
