"""Columns of tensors: flat values and a shape for each row, whatever Arrow holds them as."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfr_assets.errors import SchemaError
from tfr_assets.records.arrow.nested import list_starts, null_inside, plain, ragged_levels, take_apart
from tfr_assets.records.schema.arrow_types import TENSOR_DATA, TENSOR_SHAPE, is_tensor, sizes_of
from tfr_assets.records.schema.features import SERIALIZED, Feature


@dataclass(frozen=True)
class Tensors:
    """One tensor per row.

    Attributes:
        values: A list per row: the values in row-major order, of lists of fixed sizes where the inner ones are.
        shapes: All sizes of all rows: int64.
        starts: Where each row's sizes start among them: int64 of shape (rows + 1,).
    """

    values: pa.Array
    shapes: np.ndarray
    starts: np.ndarray

    def shape_lists(self) -> pa.LargeListArray:
        """Returns each row's shape as a list, null where the tensor is."""
        null = self.values.is_null() if self.values.null_count else None
        return pa.LargeListArray.from_arrays(pa.array(self.starts), pa.array(self.shapes), mask=null)


def holds_tensors(array: pa.Array, feature: Feature) -> bool:
    """Whether a feature without a part holds tensors' values: of a struct, or of lists that are to be packed."""
    return is_tensor(array.type) or (not feature.sequence and None in sizes_of(array.type)[1:])


def tensors_of(array: pa.Array, feature: Feature, first_row: int) -> Tensors:
    """Returns a column's tensors.

    Args:
        array: The column: a struct of `data` and `shape`, arrays of a fixed shape, or lists.
        feature: What it becomes; if it is serialized, a shape without None is that of all rows.
        first_row: Row of the dataset that the array starts with, for errors.

    Raises:
        SchemaError: A shape does not fit its data, or lists are not rectangular; named with column and row.
    """
    array = plain(array)
    if is_tensor(array.type):
        return _of_struct(array, feature, first_row)
    if feature.part == SERIALIZED and feature.shape and None not in feature.shape:
        return _of_rows(array, np.tile(np.array(feature.shape, np.int64), (len(array), 1)))
    sizes, levels = sizes_of(array.type), ragged_levels(array.type)
    nested = take_apart(array, levels, feature.column, first_row)
    rows = len(array)
    shapes = np.zeros((rows, len(sizes)), np.int64)
    shapes[:, levels:] = [size or 0 for size in sizes[levels:]]
    owner = np.arange(rows)  # the row that each list of a level is in
    for level, starts in enumerate(nested.starts):
        lengths = np.diff(starts)
        shapes[owner, level] = lengths
        uneven = shapes[owner, level] != lengths
        if uneven.any():
            raise SchemaError(
                f"column {feature.column!r} holds lists of different lengths in row {first_row + owner[uneven][0]}, "
                "but a tensor's are equal. Leave the column out of features.tensor to keep it ragged"
            )
        owner = np.repeat(owner, lengths)
    return _of_rows(nested.rows_of(nested.values, levels - 1), shapes)


def _of_rows(values: pa.Array, shapes: np.ndarray) -> Tensors:
    rows, rank = shapes.shape
    return Tensors(values, shapes.reshape(-1), np.arange(rows + 1, dtype=np.int64) * rank)


def _of_struct(array: pa.Array, feature: Feature, first_row: int) -> Tensors:
    fields = array.flatten()  # a field is null where its struct is
    data, sizes = (fields[array.type.get_field_index(name)] for name in (TENSOR_DATA, TENSOR_SHAPE))
    data, flat = plain(data), sizes.flatten()
    if flat.null_count:
        raise null_inside(feature.column, first_row)
    shapes = flat.cast(pa.int64()).to_numpy()
    tensors = Tensors(data, shapes, list_starts(sizes))
    counts = np.diff(list_starts(data))
    wrong = _products(tensors) != counts
    if data.null_count:
        wrong &= data.is_valid().to_numpy(zero_copy_only=False)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise SchemaError(
            f"column {feature.column!r} has {counts[row]} values in row {first_row + row}, but its shape there is "
            f"{sizes[row].as_py()}; correct it in the source"
        )
    return tensors


def _products(tensors: Tensors) -> np.ndarray:
    """Returns how many values each row's shape asks for: 1 where it has no sizes, -1 where one is negative."""
    ranks = np.diff(tensors.starts)
    products = np.ones(len(ranks), np.int64)
    if (sized := ranks > 0).any():
        starts = tensors.starts[:-1][sized]
        negative = np.minimum.reduceat(tensors.shapes, starts) < 0
        large = np.multiply.reduceat(tensors.shapes.astype(np.float64), starts) >= 2.0**62  # where integers would wrap
        products[sized] = np.where(negative | large, -1, np.multiply.reduceat(tensors.shapes, starts))
    return products
