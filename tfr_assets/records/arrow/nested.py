"""Nested lists, taken apart: where each level's lists start, and the values, without what lies under nulls.

All of it is arithmetic on Arrow's offsets; no value becomes a Python object.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import SchemaError
from tfr_assets.records.schema.arrow_types import sizes_of
from tfr_assets.records.schema.features import FLAT_VALUES, Feature


@dataclass(frozen=True)
class Nested:
    """Lists of lists.

    Attributes:
        starts: For each level, from the outside in, int64 of shape (lists + 1,): where each of its lists starts among
            the lists (at last, values) of the next.
        values: What the innermost lists hold.
        null: Which rows are null; None: none is.
    """

    starts: tuple[np.ndarray, ...]
    values: pa.Array
    null: pa.BooleanArray | None

    def row_starts(self, level: int) -> np.ndarray:
        """Returns where each row starts among what the lists of a level hold: int64 of shape (rows + 1,)."""
        starts = self.starts[0]
        for inner in self.starts[1 : level + 1]:
            starts = inner[starts]
        return starts

    def rows_of(self, values: pa.Array, level: int) -> pa.LargeListArray:
        """Returns what the lists of a level hold as one list per row."""
        return pa.LargeListArray.from_arrays(pa.array(self.row_starts(level)), values, mask=self.null)


def plain(array: pa.Array) -> pa.Array:
    """Returns the array without extensions and dictionaries around it."""
    while True:
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        else:
            return array


def take_apart(array: pa.Array, levels: int, column: str, first_row: int) -> Nested:
    """Takes the outer levels of nested lists apart.

    Args:
        array: Lists of any sort, at least `levels` of them inside each other.
        levels: How many.
        column: Named in errors.
        first_row: Row of the dataset that the array starts with, for errors.

    Raises:
        SchemaError: An inner list is null.
    """
    array = plain(array)
    null = array.is_null() if array.null_count else None
    starts = []
    for level in range(levels):
        if level and array.null_count:
            raise null_inside(column, first_row)
        starts.append(list_starts(array))
        array = plain(array.flatten())  # leaves out what lies under null lists
    return Nested(tuple(starts), array, null)


def list_starts(array: pa.Array) -> np.ndarray:
    """Returns where each list starts in `array.flatten()`: int64 of shape (lists + 1,)."""
    starts = np.zeros(len(array) + 1, np.int64)
    np.cumsum(pc.fill_null(pc.list_value_length(array), 0), out=starts[1:])
    return starts


def ragged_levels(data_type: pa.DataType) -> int:
    """Returns how many levels of lists there are down to the innermost of varying length."""
    return max((level for level, size in enumerate(sizes_of(data_type), 1) if size is None), default=0)


def ragged_part(array: pa.Array, feature: Feature, first_row: int) -> pa.Array:
    """Returns what a feature holds of a ragged column: one list per row.

    Args:
        array: The column.
        feature: Its `part` is `ragged_flat_values` or one of `ragged_row_lengths_N`.
        first_row: Row of the dataset that the array starts with, for errors.

    Raises:
        SchemaError: An inner list is null.
    """
    nested = take_apart(array, ragged_levels(array.type), feature.column, first_row)
    if feature.part == FLAT_VALUES:
        return nested.rows_of(nested.values, len(nested.starts) - 1)
    return nested.rows_of(pa.array(np.diff(nested.starts[feature.level + 1])), feature.level)


def null_inside(column: str, first_row: int) -> SchemaError:
    """Returns the error for a null where a feature's list needs a value."""
    return SchemaError(
        f"column {column!r} holds a null inside a list, at or after row {first_row}: "
        "a feature's list cannot. Fill or remove such values in the source, or drop the column"
    )
