"""Columns → records, one dict each: for looking at single ones, where speed does not matter."""

from itertools import pairwise
from typing import Any

import numpy as np

from tfr_assets.reading.adapters.strings import python_strings
from tfr_assets.records.arrow.arrays import Column, Ragged
from tfr_assets.records.examples.ranges import Columns
from tfr_assets.records.schema.features import Feature, FeatureSpec


def as_records(spec: FeatureSpec, columns: Columns) -> list[dict[str, Any]]:
    """Returns rows as dicts: numbers as NumPy's scalars and arrays, texts as str, other bytes as bytes, None for null.

    Args:
        spec: How the records were parsed.
        columns: Their columns, decoded with `nulls`.

    Raises:
        DamagedFile: A text is no UTF-8.
    """
    values = {name: _values(spec.columns[name][0], column) for name, column in columns.items()}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _values(feature: Feature, column: Column) -> list[Any]:
    if isinstance(column, Ragged):
        inner = _whole(feature, column.values)
        rows = list(pairwise(column.offsets.tolist()))
        if not feature.shape:  # a single value, or none
            return [inner[start] if start < stop else None for start, stop in rows]
        return [inner[start:stop] for start, stop in rows]
    return list(_whole(feature, column))


def _whole(feature: Feature, column: Column) -> Any:
    """Returns what a column holds as an array, or as a list where its rows have no common shape."""
    if isinstance(column, np.ndarray):
        return column
    if isinstance(column, Ragged):
        return [_whole(feature, column[row : row + 1].trim().values) for row in range(len(column))]
    return python_strings(feature, column)
