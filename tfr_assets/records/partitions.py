"""Ragged columns put together: flat values, and the lengths of the lists that they lie in, level by level."""

from collections.abc import Mapping

import numpy as np

from tfr_assets.records.arrays import Column, Ragged
from tfr_assets.records.decoder import Problem
from tfr_assets.records.features import FLAT_VALUES, Feature, FeatureSpec


def base_names(spec: FeatureSpec) -> tuple[str, ...]:
    """Returns the names of the columns that the features become, in their order."""
    return tuple(feature.base_name for feature in spec.features if not feature.is_row_lengths)


def parts_of(spec: FeatureSpec, name: str) -> list[Feature]:
    """Returns the features that a column is made of: its values, then its inner lists' lengths, the outer first."""
    found = [feature for feature in spec.features if feature.base_name == name]
    return sorted(found, key=lambda feature: feature.level if feature.is_row_lengths else -1)


def put_together(spec: FeatureSpec, columns: Mapping[str, Column]) -> tuple[dict[str, Column], list[Problem]]:
    """Makes one column of the features of each ragged one; the others are passed on.

    Args:
        spec: All features.
        columns: Those that were decoded, by feature name.

    Returns:
        The columns by base name, and the rows whose lists do not fit together; if there are any, no column is of use.
    """
    found: dict[str, Column] = {}
    problems: dict[int, str] = {}
    for feature in spec.features:
        if feature.is_row_lengths or feature.name not in columns:
            continue
        column = columns[feature.name]
        if feature.part == FLAT_VALUES:
            lengths = [columns[part.name] for part in parts_of(spec, feature.base_name)[1:]]
            column, bad = _nested(column, lengths)
            text = f"has lists in {feature.base_name!r} whose lengths do not add up to its number of values"
            problems |= dict.fromkeys(bad, text)
        found[feature.base_name] = column
    return found, [Problem(row, text) for row, text in sorted(problems.items())]


def _nested(flat: Column, lengths: list[Column]) -> tuple[Column, list[int]]:
    """Returns values in lists in lists, and the rows that contradict themselves."""
    inner: Column = flat
    bad = np.zeros(len(flat), bool)
    for level in reversed(lengths):
        assert isinstance(inner, Ragged)
        assert isinstance(level, Ragged)
        assert isinstance(level.values, np.ndarray)
        sizes = level.values.astype(np.int64)
        splits = np.concatenate([[0], np.cumsum(sizes)])
        bad |= np.diff(splits[level.offsets]) != np.diff(inner.offsets)
        rows = np.searchsorted(level.offsets, np.flatnonzero(sizes < 0), "right") - 1
        bad[rows] = True
        inner = Ragged(level.offsets, Ragged(splits, inner.values))
    return inner, np.flatnonzero(bad).tolist()
