"""Columns → JAX's arrays, handed over by DLPack."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from tfr_assets.errors import ConfigError
from tfr_assets.reading.adapters.strings import python_strings
from tfr_assets.records.arrow.arrays import Column, Strings
from tfr_assets.records.schema.features import Feature


def converter(features: dict[str, Feature]) -> Callable[[dict[str, Column]], dict[str, Any]]:
    """Returns a function from columns to what JAX has for them.

    Numbers become arrays, which share memory where its address is a multiple of 64, as JAX wants it, and are copied
    elsewhere; without `jax_enable_x64`, 64 bits become 32. Columns of varying length become `(offsets, values)`,
    strings lists of str or bytes.

    Args:
        features: Of the columns, by name.
    """
    return lambda columns: {name: _array(features[name], column) for name, column in columns.items()}


def _array(feature: Feature, column: Column) -> Any:
    if isinstance(column, Strings):
        return python_strings(feature, column).tolist()
    if not isinstance(column, np.ndarray):
        trimmed = column.trim()
        return _array(feature, trimmed.offsets), _array(feature, trimmed.values)
    if column.dtype in (np.int64, np.uint64) and not jax.config.jax_enable_x64 and column.size:
        narrow = np.iinfo(np.int32 if column.dtype == np.int64 else np.uint32)
        if column.min() < narrow.min or column.max() > narrow.max:
            raise ConfigError(
                f"column {feature.column!r} holds integers beyond 32 bits, which JAX would cut off; call "
                "jax.config.update('jax_enable_x64', True), or leave the column out"
            )
    return jax.dlpack.from_dlpack(np.ascontiguousarray(column))
