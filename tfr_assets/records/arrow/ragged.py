"""Ragged columns from their parts: flat values, and the lengths of the lists that they are in, level by level."""

from collections.abc import Mapping

import numpy as np

from tfr_assets.records.arrow.arrays import Column, Ragged
from tfr_assets.records.schema.features import FLAT_VALUES, FeatureSpec


def put_together(spec: FeatureSpec, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Makes one column of the features of each ragged one; the others are passed on.

    Args:
        spec: All features.
        columns: Those that were decoded, by feature name; the decoder has refused lists that do not fit together.

    Returns:
        The columns by base name.
    """
    found: dict[str, Column] = {}
    for name, (values, *lengths) in spec.columns.items():
        if values.name in columns:
            column = columns[values.name]
            found[name] = (
                _nest(column, [columns[part.name] for part in lengths]) if values.part == FLAT_VALUES else column
            )
    return found


def _nest(flat: Column, lengths: list[Column]) -> Column:
    """Returns values in lists in lists."""
    inner = flat
    for level in reversed(lengths):
        assert isinstance(inner, Ragged)
        assert isinstance(level, Ragged)
        assert isinstance(level.values, np.ndarray)
        splits = np.zeros(len(level.values) + 1, np.int64)
        np.cumsum(level.values, out=splits[1:])
        inner = Ragged(level.offsets, Ragged(splits, inner.values))
    return inner
