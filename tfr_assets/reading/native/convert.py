"""Columns → what training code without TensorFlow works with: arrays, Arrow's record batches, DataFrames, tensors."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tfr_assets.errors import ConfigError, DamagedFile
from tfr_assets.packages import need
from tfr_assets.records.arrow.arrays import Column, Ragged, to_arrow
from tfr_assets.records.examples.ranges import Columns
from tfr_assets.records.schema.features import Feature, FeatureSpec

_INTO = ("numpy", "arrow", "pandas", "torch", "jax")
_ADAPTERS = {"torch": ("PyTorch", "torch_tensors"), "jax": ("JAX", "jax_arrays")}
_WITH_NULLS = ("arrow", "pandas", "records")


def keeps_nulls(into: str) -> bool:
    """Whether an absent string is to be told from an empty one."""
    return into in _WITH_NULLS


def converter(
    spec: FeatureSpec, names: tuple[str, ...], into: str, others: Sequence[str] = ()
) -> Callable[[Columns], Any]:
    """Returns a function from columns to `numpy`, `arrow`, `pandas`, `torch` or `jax`.

    Args:
        spec: How the records were parsed.
        names: The columns.
        into: What they become.
        others: What else the caller takes, for the message.

    Raises:
        ConfigError: It is none of these.
        MissingPackage: What makes it is not installed.
    """
    if into not in _INTO:
        *first, last = map(repr, (*_INTO, *others))
        raise ConfigError(f"into={into!r}: use {', '.join(first)} or {last}")
    if into == "numpy":
        return lambda columns: columns
    features = {name: spec.columns[name][0] for name in names}
    if into in _ADAPTERS:
        package, module = _ADAPTERS[into]
        need(into, package, f"into={into!r}", f"`pip install 'tfr-assets[{into}]'`")
        adapter: Callable[[Columns], Any] = import_module(f"tfr_assets.reading.adapters.{module}").converter(features)
        return adapter
    import pyarrow as pa

    def convert(columns: Columns) -> Any:
        arrays = {name: _arrow(features[name], column) for name, column in columns.items()}
        if into == "arrow":
            return pa.RecordBatch.from_pydict(arrays)
        return _frame(features, arrays)

    return convert


def _frame(features: dict[str, Feature], arrays: dict[str, Any]) -> Any:
    """Returns a DataFrame. Integers that may be null are pandas' nullable ones: floats would round them."""
    import pandas as pd
    import pyarrow as pa

    nullable = {pa.bool_(): pd.BooleanDtype()}
    for bits in (8, 16, 32, 64):
        nullable |= {getattr(pa, f"int{bits}")(): getattr(pd, f"Int{bits}Dtype")()}
        nullable |= {getattr(pa, f"uint{bits}")(): getattr(pd, f"UInt{bits}Dtype")()}
    return pd.DataFrame(
        {
            name: array.to_pandas(types_mapper=nullable.get if _may_be_null(features[name]) else None)
            for name, array in arrays.items()
        }
    )


def _may_be_null(feature: Feature) -> bool:
    return not feature.shape and feature.is_ragged


def _arrow(feature: Feature, column: Column) -> Any:
    import pyarrow as pa

    if isinstance(column, Ragged) and not feature.shape:
        there = np.diff(column.offsets) > 0
        array = to_arrow(column.values).take(pa.array(column.offsets[:-1], mask=~there))
    else:
        array = to_arrow(column)
    if feature.is_text:
        try:
            return array.cast(_as_text(array.type))
        except pa.ArrowInvalid as error:
            raise DamagedFile(
                f"column {feature.column!r} holds bytes that are not UTF-8; read it into='numpy'"
            ) from error
    return array


def _as_text(data_type: Any) -> Any:
    """Returns a type with strings in place of bytes, however deep they lie in lists."""
    import pyarrow as pa

    if pa.types.is_large_list(data_type):
        return pa.large_list(_as_text(data_type.value_type))
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(_as_text(data_type.value_type), data_type.list_size)
    return pa.large_string()
