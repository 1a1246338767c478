"""What the op `TfrColumns` gives, by TensorFlow's public functions: where the op cannot be.

A TensorFlow may not take it, and it cannot be saved with an iterator. Slower: Python copies each batch, one at a time,
and makes an object of each string.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import tensorflow as tf

from tfr_assets.reading.tensors.hand_over import HandedOver
from tfr_assets.records.arrow.arrays import Column, Ragged, Strings


def tensors_of(batch: tf.Tensor, dtypes: Sequence[tf.DType]) -> list[tf.Tensor]:
    """Returns what `op.tensors_of` does.

    Args:
        batch: int64 of shape (4,): a row of `HandedOver.batches`.
        dtypes: Of the outputs.
    """

    def copy(given: np.ndarray) -> tuple[str, Sequence[Column]]:
        table, number, start, stop = map(int, given)
        rows = HandedOver.at(table)
        found = [] if rows.problem else [column[start:stop] for column in rows.columns]
        rows.fetch(number)
        return rows.problem, found

    return tensors_from(copy, batch, dtypes)


def tensors_from(
    rows_of: Callable[[np.ndarray], tuple[str, Sequence[Column]]],
    given: tf.Tensor,
    dtypes: Sequence[tf.DType],
    stateful: bool = True,
) -> list[tf.Tensor]:
    """Returns the outputs of what Python gives: of each column its row splits, from the outside in, and its values.

    Args:
        rows_of: Gives what is wrong, or nothing, and the columns. An exception would reach training code as a stack
            trace.
        given: What it is called with.
        dtypes: Of the outputs.
        stateful: Whether it may give something else for the same. If not, an iterator that calls it can be saved.
    """

    def copy(given: np.ndarray) -> tuple[str, *tuple[np.ndarray, ...]]:
        problem, columns = rows_of(given)
        types = ["S1" if dtype == tf.string else dtype.as_numpy_dtype for dtype in dtypes]
        if problem:
            return problem, *(np.zeros(0, kind) for kind in types)
        typed = zip(_copied(columns), types, strict=True)
        return "", *(array if kind == "S1" else array.view(kind) for array, kind in typed)

    problem, *tensors = tf.numpy_function(copy, [given], [tf.string, *dtypes], stateful=stateful)
    with tf.control_dependencies([tf.debugging.Assert(tf.equal(problem, ""), [problem])]):
        return [tf.identity(tensor) for tensor in tensors]


def _copied(columns: Sequence[Column]) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for column in columns:
        start, stop = 0, len(column)
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
