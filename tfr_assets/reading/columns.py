"""Some of a dataset's columns: what is not chosen is not parsed."""

import dataclasses
import difflib
from collections.abc import Sequence

from tfr_assets.errors import ConfigError
from tfr_assets.reading.files import RecordFiles
from tfr_assets.records.features import FeatureSpec


def with_columns(files: RecordFiles, columns: Sequence[str] | None) -> RecordFiles:
    """Returns the files, to be parsed for some columns only.

    Args:
        files: The files.
        columns: Names of tensors; None: all.

    Raises:
        ConfigError: There is no such column, or none is chosen.
    """
    if columns is None:
        return files
    names = {feature.base_name for feature in files.features.features}
    if isinstance(columns, str) or not columns:
        raise ConfigError(f"columns={columns!r} must be a list of some of {', '.join(sorted(names))}")
    for column in columns:
        if column not in names:
            close = difflib.get_close_matches(str(column), names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(names))}"
            raise ConfigError(f"there is no column {column!r}; {hint}")
    chosen = tuple(feature for feature in files.features.features if feature.base_name in columns)
    return dataclasses.replace(files, features=FeatureSpec(chosen))
