"""What one column becomes: the features of its type and options, or why it cannot be any."""

import math
from dataclasses import replace

import pyarrow as pa

from tfr_assets.errors import ConfigError, SchemaError
from tfr_assets.records.schema.arrow_types import (
    TENSOR_DATA,
    TENSOR_SHAPE,
    cast_type,
    is_list,
    is_tensor,
    sizes_of,
    storage_type,
    value_type,
    with_value_type,
)
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import (
    FLAT_VALUES,
    PACKED,
    ROW_LENGTHS,
    SERIALIZED,
    SHAPE,
    Feature,
    Kind,
)

_INTEGERS = str(pa.list_(pa.int64()))


def features_of(
    path: str, data_type: pa.DataType, optional: bool, options: FeatureOptions, sequence: bool
) -> list[Feature]:
    """Returns the features that a column becomes: one, or several where one list cannot hold it.

    Args:
        path: The column's.
        data_type: Its type, as `leaves` gives it.
        optional: Whether it may have nulls.
        options: Of these, all that change a single column.
        sequence: Whether it is to be a feature list.

    Raises:
        SchemaError: No feature can hold it.
        ConfigError: The options are invalid.
    """
    tensor = is_tensor(data_type)
    held = storage_type(data_type).field(TENSOR_DATA).type if tensor else data_type
    cast = options.cast.get(path)
    arrow_type = with_value_type(storage_type(held), cast_type(cast, path)) if cast else held
    if options.tensor.get(path) == SERIALIZED:
        arrow_type = pa.list_(value_type(arrow_type))  # without extensions, whose values' type has no word
    feature = Feature(
        name=options.rename.get(path, path),
        kind=_kind(path, value_type(arrow_type), data_type),
        shape=() if tensor else _shape(path, data_type),
        column=path,
        arrow_type=str(arrow_type),
        optional=optional,
        cast_from=str(value_type(held)) if cast else None,
    )
    if not feature.name:
        raise ConfigError(f"features.rename: column {path!r} would become a feature without a name; give it one here")
    if sequence:
        return [_feature_list(feature, data_type, options)]
    if (wanted := options.shape.get(path)) is not None:
        feature = replace(feature, shape=_fixed_shape(path, data_type, feature.shape, tuple(wanted)))
    if tensor:
        rank = sizes_of(storage_type(data_type).field(TENSOR_SHAPE).type)[0]
        return _tensor(feature, rank, (None,) * (rank or 0), options)
    return _values(feature, data_type, options)


def _values(feature: Feature, data_type: pa.DataType, options: FeatureOptions) -> list[Feature]:
    """Returns what a column of scalars or lists becomes."""
    shape, chosen = feature.shape, options.tensor.get(feature.column)
    if chosen is not None and not shape:
        raise ConfigError(
            f"features.tensor: column {feature.column!r} of type {data_type} is not a list, array or tensor"
        )
    if chosen == SERIALIZED or (chosen == PACKED and None in shape[1:]):
        return _tensor(feature, len(shape), shape, options)
    if None not in shape[1:]:
        return [replace(feature, fill=_fill(feature, options))]
    _fill(feature, options)
    levels = max(level for level, size in enumerate(shape) if size is None)
    lengths = [
        _part(feature, f"{ROW_LENGTHS}{level}", kind=Kind.INT64, shape=(None,), arrow_type=_INTEGERS, cast_from=None)
        for level in range(levels)
    ]
    return [_part(feature, FLAT_VALUES, shape=(None, *shape[levels + 1 :])), *lengths]


def _tensor(
    feature: Feature, rank: int | None, shape: tuple[int | None, ...], options: FeatureOptions
) -> list[Feature]:
    """Returns what a tensor becomes.

    Args:
        feature: Its name, and kind and type of its values.
        rank: Its number of sizes; None where that varies.
        shape: The sizes, None where they vary; `()` where their number does.
        options: Of these, `tensor` and `fill`.
    """
    chosen = options.tensor.get(feature.column, PACKED)
    fill = _fill(replace(feature, shape=shape or (None,)), options)
    if chosen == SERIALIZED:
        _check_exact(feature, fill)
        return [replace(feature, kind=Kind.BYTES, shape=shape, fill=fill, part=SERIALIZED)]
    sizes = _part(feature, SHAPE, kind=Kind.INT64, shape=(rank,), arrow_type=_INTEGERS, cast_from=None)
    return [replace(feature, shape=(None,)), sizes]


def _check_exact(feature: Feature, fill: int | float | str | None) -> None:
    """Refuses what readers cannot put between tensors of exactly the column's type."""
    if fill is None or "int" not in feature.value_type:
        return
    try:
        pa.scalar(fill).cast(feature.value_type)
    except pa.ArrowInvalid as error:
        raise ConfigError(f"features.fill: {fill!r} of column {feature.column!r} is no {feature.value_type}") from error


def _part(feature: Feature, part: str, **changes: object) -> Feature:
    return replace(feature, name=f"{feature.name}/{part}", part=part, **changes)  # type: ignore[arg-type]


def _feature_list(feature: Feature, data_type: pa.DataType, options: FeatureOptions) -> Feature:
    """Returns the feature list that a column becomes: its outermost list's elements are the steps."""
    path, shape = feature.column, feature.shape
    for option in ("shape", "fill", "tensor", "names"):
        if path in getattr(options, option):
            raise ConfigError(f"features.{option}: column {path!r} is one of features.sequence, which takes none")
    if not shape:
        raise ConfigError(f"features.sequence: column {path!r} of type {data_type} is not a list")
    if None in shape[2:]:
        raise SchemaError(
            f"column {path!r} of type {data_type} is a list of lists of lists; a feature list holds one list per step. "
            "Take it out of features.sequence, flatten it in the source, or drop it under features.drop"
        )
    return replace(feature, shape=(None, *shape[1:]), sequence=True)


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
    data_type = data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type
    if pa.types.is_dictionary(data_type):
        return _shape(path, data_type.value_type)
    if not is_list(data_type):
        return ()
    size = data_type.list_size if pa.types.is_fixed_size_list(data_type) else None
    if size == 0:
        raise SchemaError(f"column {path!r} of type {data_type} never holds a value; drop it under features.drop")
    return (size, *_shape(path, data_type.value_type))


def _fixed_shape(
    path: str, data_type: pa.DataType, shape: tuple[int | None, ...], wanted: tuple[int, ...]
) -> tuple[int, ...]:
    if not shape:
        raise ConfigError(f"features.shape: column {path!r} of type {data_type} is not a list")
    if None in shape[1:]:
        raise ConfigError(f"features.shape: column {path!r} of type {data_type} is a list of lists of varying length")
    inner, values = math.prod(size for size in shape if size is not None), math.prod(wanted)
    if values % inner if None in shape else values != inner:
        raise ConfigError(
            f"features.shape: {list(wanted)} of column {path!r} has {values} values, but its type {data_type} "
            f"holds {inner}"
        )
    return wanted


def _fill(feature: Feature, options: FeatureOptions) -> int | float | str | None:
    """Returns what readers put where a feature is absent."""
    fill = options.fill.get(feature.column)
    if fill is None:
        return None
    if None in feature.shape:
        raise ConfigError(
            f"features.fill: column {feature.column!r} is a list of varying length; where it is null, readers see an "
            "empty list"
        )
    fits = {
        Kind.INT64: isinstance(fill, int) and not isinstance(fill, bool) and -(2**63) <= fill < 2**63,
        Kind.FLOAT32: isinstance(fill, int | float) and not isinstance(fill, bool),
        Kind.BYTES: isinstance(fill, str),
    }
    if not fits[feature.kind]:
        raise ConfigError(
            f"features.fill: {fill!r} is not a value for column {feature.column!r}, which becomes {feature.kind.value}"
        )
    return fill
