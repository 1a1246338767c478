"""Some of a dataset's columns: what is not chosen is not parsed."""

import dataclasses
from collections.abc import Iterable, Sequence

from tfr_assets.errors import ConfigError, suggestion
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.records.schema.features import SERIALIZED, FeatureSpec


def with_columns(files: RecordFiles, columns: Sequence[str] | None) -> RecordFiles:
    """Returns the files, to be parsed for some columns only, in the order of all. Raises as `chosen_columns`."""
    if columns is None:
        return files
    names = set(chosen_columns(files.features, columns))
    chosen = tuple(feature for feature in files.features.features if feature.base_name in names)
    return dataclasses.replace(files, features=FeatureSpec(chosen))


def chosen_columns(features: FeatureSpec, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Returns the names of the columns to read, each once, in the order asked for.

    Args:
        features: All features.
        columns: Names; None: all.

    Raises:
        ConfigError: There is no such column, or none is chosen.
    """
    known = features.columns
    if columns is None:
        return tuple(known)
    if isinstance(columns, str) or not isinstance(columns, Iterable) or not (names := tuple(dict.fromkeys(columns))):
        raise ConfigError(f"columns={columns!r} must be a list of some of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise ConfigError(f"there is no column {name!r}; {suggestion(name, known, 'there are')}")
    return names


def check_decodable(features: FeatureSpec, column: str) -> None:
    """Refuses a column that only TensorFlow parses.

    Raises:
        ConfigError: It is one.
    """
    feature = features.columns[column][0]
    if feature.part == SERIALIZED and feature.shape:
        raise ConfigError(
            f"column {column!r} holds serialized tensors, which only TensorFlow parses; leave it out with columns=, or "
            "read it with tfr_assets.read"
        )
