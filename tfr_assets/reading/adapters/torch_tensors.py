"""Columns → PyTorch's tensors, which share the columns' memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tfr_assets.reading.adapters.strings import python_strings
from tfr_assets.records.arrow.arrays import Column, Ragged, Strings
from tfr_assets.records.schema.features import Feature


def converter(features: dict[str, Feature]) -> Callable[[dict[str, Column]], dict[str, Any]]:
    """Returns a function from columns to what PyTorch has for them.

    Numbers become tensors without a copy; lists of varying length nested tensors of layout `torch.jagged`, without a
    copy of the values; strings lists of str or bytes; and lists of these, or of lists of varying length, Python lists.

    Args:
        features: Of the columns, by name.
    """
    return lambda columns: {name: _tensor(features[name], column) for name, column in columns.items()}


def _tensor(feature: Feature, column: Column) -> Any:
    if isinstance(column, np.ndarray):
        return torch.from_numpy(column if column.flags.writeable else column.copy())
    if isinstance(column, Strings):
        return python_strings(feature, column).tolist()
    trimmed = column.trim()
    if isinstance(trimmed.values, np.ndarray):
        values, offsets = _tensor(feature, trimmed.values), torch.from_numpy(trimmed.offsets)
        return torch.nested.nested_tensor_from_jagged(values, offsets)
    return [_rows(feature, column[row : row + 1]) for row in range(len(column))]


def _rows(feature: Feature, row: Ragged) -> list[Any]:
    """Returns what one row holds."""
    inner = row.trim().values
    if isinstance(inner, Ragged) and isinstance(inner.values, np.ndarray):
        values = _tensor(feature, inner.trim().values)
        return list(torch.split(values, np.diff(inner.offsets).tolist())) if len(inner) else []
    found: list[Any] = _tensor(feature, inner)
    return found
