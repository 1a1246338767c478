"""Columns → records, one dict each: for looking at single ones, where speed does not matter."""

from itertools import pairwise
from typing import Any

import numpy as np

from tfr_assets.errors import DamagedFile
from tfr_assets.records.arrow.arrays import Column, Ragged, Strings
from tfr_assets.records.examples.ranges import Columns
from tfr_assets.records.schema.features import SERIALIZED, Feature, FeatureSpec, Kind

TEXT = ("string", "large_string", "string_view")


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
    return _strings(feature, column)


def _strings(feature: Feature, column: Strings) -> Any:
    found = column.to_numpy()
    if feature.kind is not Kind.BYTES or feature.value_type not in TEXT or feature.part == SERIALIZED:
        return found
    flat = found.reshape(-1)
    try:
        flat[:] = [value.decode() for value in flat]
    except UnicodeDecodeError as error:
        raise DamagedFile(f"column {feature.column!r} holds bytes that are no UTF-8; read it into='numpy'") from error
    return found
