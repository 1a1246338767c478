"""What the op `TfrColumns` gives, by TensorFlow's public functions: for a TensorFlow that does not take the op.

Slower: Python copies each batch, one at a time, and makes an object of each string.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import tensorflow as tf

from tfr_assets.reading.tensors.hand_over import HandedOver
from tfr_assets.records.arrow.arrays import Ragged, Strings


def tensors_of(batch: tf.Tensor, dtypes: Sequence[tf.DType]) -> list[tf.Tensor]:
    """Returns what `op.tensors_of` does.

    Args:
        batch: int64 of shape (4,): a row of `HandedOver.batches`.
        dtypes: Of the outputs.
    """

    def copy(given: np.ndarray) -> tuple[str, *tuple[np.ndarray, ...]]:
        table, number, start, stop = map(int, given)
        rows = HandedOver.at(table)
        found = [] if rows.problem else _copied(rows, start, stop)
        rows.fetch(number)
        types = ["S1" if dtype == tf.string else dtype.as_numpy_dtype for dtype in dtypes]
        if rows.problem:  # as a value: an exception would reach training code as a stack trace
            return rows.problem, *(np.zeros(0, kind) for kind in types)
        typed = zip(found, types, strict=True)
        return "", *(array if kind == "S1" else array.view(kind) for array, kind in typed)

    problem, *tensors = tf.numpy_function(copy, [batch], [tf.string, *dtypes])
    with tf.control_dependencies([tf.debugging.Assert(tf.equal(problem, ""), [problem])]):
        return [tf.identity(tensor) for tensor in tensors]


def _copied(rows: HandedOver, start: int, stop: int) -> list[np.ndarray]:
    """Returns the outputs of some rows: of each column its row splits, from the outside in, and its values."""
    found: list[np.ndarray] = []
    for column in rows.columns:
        first, last = start, stop
        while isinstance(column, Ragged):
            splits = np.asarray(column.offsets[first : last + 1], np.int64)
            found.append(splits - splits[0])
            first, last, column = int(splits[0]), int(splits[-1]), column.values
        found.append(_strings(column, first, last) if isinstance(column, Strings) else column[first:last].copy())
    return found


def _strings(column: Strings, start: int, stop: int) -> np.ndarray:
    values = int(np.prod(column.inner, dtype=np.int64))  # of a row
    offsets = column.offsets[start * values : stop * values + 1]
    content = column.data[offsets[0] : offsets[-1]].tobytes()
    found = np.empty(len(offsets) - 1, object)
    found[:] = [content[begin:end] for begin, end in pairwise((offsets - offsets[0]).tolist())]
    return found.reshape(stop - start, *column.inner)
