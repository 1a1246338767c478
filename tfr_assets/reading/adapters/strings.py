"""Strings as Python's, for what has no type of its own for them."""

import numpy as np

from tfr_assets.errors import DamagedFile
from tfr_assets.records.arrow.arrays import Strings
from tfr_assets.records.schema.features import Feature


def python_strings(feature: Feature, column: Strings) -> np.ndarray:
    """Returns strings as an array of objects of the column's shape: str where the column was text, else bytes.

    Raises:
        DamagedFile: A text is no UTF-8.
    """
    found = column.to_numpy()
    if not feature.is_text:
        return found
    flat = found.reshape(-1)
    try:
        flat[:] = [value.decode() for value in flat]
    except UnicodeDecodeError as error:
        raise DamagedFile(f"column {feature.column!r} holds bytes that are no UTF-8; read it into='numpy'") from error
    return found
