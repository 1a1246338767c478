"""The reader `columnar`: batches that compiled kernels decode, as a `tf.data.Dataset`.

What crosses from Python to TensorFlow is few and large: an array a column, and all strings of a column as one, which
TensorFlow takes apart itself, in parallel; an object a string would cost more than all of the decoding.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_assets.reading.columnar import Batches
from tfr_assets.reading.files import RecordFiles
from tfr_assets.reading.serialized import parse_tensors
from tfr_assets.reading.spec import Tensors, element_spec
from tfr_assets.records.arrays import Column, Ragged, Strings
from tfr_assets.records.features import SERIALIZED, FeatureSpec
from tfr_assets.records.join import as_tensor_proto, join_separated
from tfr_assets.records.partitions import base_names, parts_of

_WORKERS = 2


def columnar_batches(files: RecordFiles, batch_size: int, drop_remainder: bool = False) -> tf.data.Dataset:
    """Returns the batches of all records, as `spec.element_spec` says.

    Args:
        files: What to read.
        batch_size: Records a batch.
        drop_remainder: Whether to leave out a last batch that is not full.

    Raises:
        ConfigError: Records are tf.SequenceExamples, which are not decoded here.
    """
    names = base_names(files.features)
    Batches(files, names, batch_size, (0, files.records))  # what it refuses is refused at once
    plans = _plans(files.features, batch_size if drop_remainder else None)

    def generate() -> Iterator[tuple[Any, ...]]:
        found = Batches(files, names, batch_size, (0, files.records), workers=_WORKERS, drop_remainder=drop_remainder)
        with found:
            for batch in found:
                yield tuple(part for name in names for part in _taken_apart(batch[name]))

    @tf.autograph.experimental.do_not_convert
    def put_together(*parts: tf.Tensor) -> Tensors:
        left = list(parts)
        return {name: plan.tensor(left) for name, plan in plans.items()}

    signature = tuple(spec for plan in plans.values() for spec in plan.signature())
    whole, rest = divmod(files.records, batch_size)
    count = whole + bool(rest and not drop_remainder)
    dataset = tf.data.Dataset.from_generator(generate, output_signature=signature)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    return dataset.map(put_together, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


class _Plan:
    """How one column crosses: as row splits for each ragged dimension, from the outside in, then its values."""

    def __init__(self, features: FeatureSpec, name: str, spec: Any, rows: int | None) -> None:
        self._feature = parts_of(features, name)[0]
        if self._feature.part == SERIALIZED:
            spec = tf.TensorSpec((rows,), tf.string)
        self._ragged_rank = getattr(spec, "ragged_rank", 0)
        self._rows, self._dtype = rows, spec.dtype
        self._shape = (None, *spec.shape[self._ragged_rank + 1 :]) if self._ragged_rank else tuple(spec.shape)

    def signature(self) -> list[tf.TensorSpec]:
        """Returns the specs of what `_taken_apart` gives."""
        rows = None if self._rows is None else self._rows + 1
        splits = [tf.TensorSpec((rows if level == 0 else None,), tf.int64) for level in range(self._ragged_rank)]
        if self._dtype == tf.string:
            return [*splits, tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int64)]
        return [*splits, tf.TensorSpec(self._shape, self._dtype)]

    def tensor(self, parts: list[tf.Tensor]) -> tf.Tensor | tf.RaggedTensor:
        """Returns the column's tensor, and takes what it is made of from the front of `parts`."""
        splits = [parts.pop(0) for _ in range(self._ragged_rank)]
        values = parts.pop(0)
        if self._dtype == tf.string:
            values = _split(values, parts.pop(0), parts.pop(0))
            values = tf.ensure_shape(tf.reshape(values, [-1, *self._shape[1:]]), self._shape)
        if self._feature.part == SERIALIZED:
            return parse_tensors(self._feature, values)
        return tf.RaggedTensor.from_nested_row_splits(values, splits, validate=False) if splits else values


def _plans(features: FeatureSpec, rows: int | None) -> dict[str, _Plan]:
    return {name: _Plan(features, name, spec, rows) for name, spec in element_spec(features, rows).items()}


def _split(blob: tf.Tensor, separator: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Returns the strings that `_taken_apart` put into one."""
    return tf.cond(
        tf.equal(separator, ""),
        lambda: tf.ensure_shape(tf.io.parse_tensor(blob, tf.string), (None,)),
        lambda: tf.raw_ops.StringSplitV2(input=[blob], sep=separator).values[:count],
    )


def _taken_apart(column: Column) -> list[Any]:
    if isinstance(column, np.ndarray):
        return [column]
    if isinstance(column, Ragged):
        trimmed = column.trimmed()
        return [trimmed.offsets, *_taken_apart(trimmed.values)]
    return [*_as_one(column), np.int64(len(column.offsets) - 1)]


def _as_one(strings: Strings) -> tuple[bytes, bytes]:
    return join_separated(strings) or (as_tensor_proto(strings), b"")
