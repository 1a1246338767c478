"""Ragged columns put together: flat values, and the lengths of the lists that they lie in, level by level."""

from collections.abc import Mapping

import numpy as np

from tfr_assets.records.arrays import Column, Ragged
from tfr_assets.records.features import FLAT_VALUES, Feature, FeatureSpec


def base_names(spec: FeatureSpec) -> tuple[str, ...]:
    """Returns the names of the columns that the features become, in their order."""
    return tuple(feature.base_name for feature in spec.features if not feature.is_row_lengths)


def parts_of(spec: FeatureSpec, name: str) -> list[Feature]:
    """Returns the features that a column is made of: its values, then its inner lists' lengths, the outer first."""
    found = [feature for feature in spec.features if feature.base_name == name]
    return sorted(found, key=lambda feature: feature.level if feature.is_row_lengths else -1)


def put_together(spec: FeatureSpec, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Makes one column of the features of each ragged one; the others are passed on.

    Args:
        spec: All features.
        columns: Those that were decoded, by feature name; the decoder has refused lists that do not fit together.

    Returns:
        The columns by base name.
    """
    found: dict[str, Column] = {}
    for feature in spec.features:
        if feature.is_row_lengths or feature.name not in columns:
            continue
        column = columns[feature.name]
        if feature.part == FLAT_VALUES:
            column = _nested(column, [columns[part.name] for part in parts_of(spec, feature.base_name)[1:]])
        found[feature.base_name] = column
    return found


def _nested(flat: Column, lengths: list[Column]) -> Column:
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
