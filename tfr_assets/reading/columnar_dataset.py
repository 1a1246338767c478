"""The reader `columnar`: batches that compiled kernels decode, as a `tf.data.Dataset`.

What crosses from Python to TensorFlow is few and large, because each array costs and each string costs more: all scalar
columns of a type are one array, and all strings of a batch are one string, which TensorFlow takes apart in parallel.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_assets.reading.columnar import Batches
from tfr_assets.reading.files import RecordFiles
from tfr_assets.reading.serialized import parse_tensors
from tfr_assets.reading.spec import Tensors, element_spec
from tfr_assets.records.arrays import Ragged, Strings
from tfr_assets.records.features import SERIALIZED, FeatureSpec
from tfr_assets.records.join import join_strings
from tfr_assets.records.partitions import base_names, parts_of
from tfr_assets.records.ranges import Columns

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
    names, everything = base_names(files.features), (0, files.records)
    Batches(files, names, batch_size, everything)  # what it refuses is refused at once
    crossing = _Crossing(files.features, batch_size if drop_remainder else None)

    def generate() -> Iterator[list[Any]]:
        with Batches(files, names, batch_size, everything, False, _WORKERS, drop_remainder) as found:
            for batch in found:
                yield crossing.take_apart(batch)

    @tf.autograph.experimental.do_not_convert
    def put_together(*parts: tf.Tensor) -> Tensors:
        return crossing.put_together(parts)

    whole, rest = divmod(files.records, batch_size)
    dataset = tf.data.Dataset.from_generator(lambda: map(tuple, generate()), output_signature=crossing.signature)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(whole + bool(rest and not drop_remainder)))
    return dataset.map(put_together, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


class _Crossing:
    """How columns cross to TensorFlow.

    Attributes:
        signature: What crosses: for each type, all its scalar columns as (columns, rows); for each other column its row
            splits, from the outside in, and its numbers; all strings as one, their separator, and how many there are
            of each column.
    """

    def __init__(self, features: FeatureSpec, rows: int | None) -> None:
        self._features = {name: parts_of(features, name)[0] for name in base_names(features)}
        specs = element_spec(features, rows)
        for name, feature in self._features.items():
            if feature.part == SERIALIZED:
                specs[name] = tf.TensorSpec((rows,), tf.string)
        self._specs = specs
        self._ranks = {name: getattr(spec, "ragged_rank", 0) for name, spec in specs.items()}
        self._strings = [name for name, spec in specs.items() if spec.dtype == tf.string]
        dense = [
            n for n, spec in specs.items() if n not in self._strings and not self._ranks[n] and spec.shape.rank == 1
        ]
        self._groups = {
            d: [n for n in dense if specs[n].dtype == d] for d in dict.fromkeys(specs[n].dtype for n in dense)
        }
        self._others = [name for name in specs if name not in dense]
        self.signature = tuple(self._signature(rows))

    def _signature(self, rows: int | None) -> Iterator[tf.TensorSpec]:
        for dtype, names in self._groups.items():
            yield tf.TensorSpec((len(names), rows), dtype)
        for name in self._others:
            spec, rank = self._specs[name], self._ranks[name]
            for level in range(rank):
                yield tf.TensorSpec((None if rows is None or level else rows + 1,), tf.int64)
            if spec.dtype != tf.string:
                yield tf.TensorSpec((None if rank else rows, *spec.shape[rank + 1 :]), spec.dtype)
        if self._strings:
            yield tf.TensorSpec((), tf.string)
            yield tf.TensorSpec((), tf.string)
            yield tf.TensorSpec((len(self._strings),), tf.int64)

    def take_apart(self, batch: Columns) -> list[Any]:
        """Returns what crosses of a batch."""
        numbers: dict[str, Any] = batch
        parts: list[Any] = [np.stack([numbers[name] for name in names]) for names in self._groups.values()]
        strings: list[Strings] = []
        for name in self._others:
            column = batch[name]
            if isinstance(column, Ragged):
                column = column.trimmed()
            while isinstance(column, Ragged):
                parts.append(column.offsets)
                column = column.values
            if isinstance(column, Strings):
                strings.append(column)
            else:
                parts.append(column)
        if self._strings:
            parts += [*join_strings(strings), np.array([len(column.offsets) - 1 for column in strings], np.int64)]
        return parts

    def put_together(self, crossed: tuple[tf.Tensor, ...]) -> Tensors:
        """Returns the tensors of a batch."""
        parts = iter(crossed)
        found: Tensors = {}
        for names in self._groups.values():
            found |= zip(names, tf.unstack(next(parts)), strict=True)
        strings = iter(self._split(*crossed[-3:]) if self._strings else ())
        for name in self._others:
            spec, rank = self._specs[name], self._ranks[name]
            splits = [next(parts) for _ in range(rank)]
            if spec.dtype == tf.string:
                inner = tuple(spec.shape[rank + 1 :])
                values = tf.reshape(next(strings), (-1, *inner))
                values = values if rank else tf.ensure_shape(values, spec.shape)
            else:
                values = next(parts)
            found[name] = tf.RaggedTensor.from_nested_row_splits(values, splits, validate=False) if rank else values
            if self._features[name].part == SERIALIZED:
                found[name] = parse_tensors(self._features[name], values)
        return {name: found[name] for name in self._specs}

    def _split(self, blob: tf.Tensor, separator: tf.Tensor, counts: tf.Tensor) -> list[tf.Tensor]:
        """Returns the strings of each column."""
        values = tf.cond(
            tf.equal(separator, ""),
            lambda: tf.ensure_shape(tf.io.parse_tensor(blob, tf.string), (None,)),
            lambda: tf.raw_ops.StringSplitV2(input=[blob], sep=separator).values,
        )
        stops = tf.unstack(tf.cumsum(counts))
        return [values[start:stop] for start, stop in zip([0, *stops[:-1]], stops, strict=True)]
