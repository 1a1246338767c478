"""The reader `columnar`: batches that compiled kernels decode, as a `tf.data.Dataset`.

What crosses from Python to TensorFlow is few and large, because each array costs and each string costs more: all scalar
columns of a type are one array, and all strings of a batch are one string, which TensorFlow takes apart in parallel.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_assets.errors import ConfigError, TfrError
from tfr_assets.reading.columnar import Batches
from tfr_assets.reading.decode import decoder
from tfr_assets.reading.files import RecordFiles
from tfr_assets.reading.plan import share_of
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.serialized import parse_tensors
from tfr_assets.reading.spec import Tensors, element_spec
from tfr_assets.records.arrays import Ragged, Strings
from tfr_assets.records.features import SERIALIZED, FeatureSpec
from tfr_assets.records.join import join_strings
from tfr_assets.records.partitions import base_names, parts_of
from tfr_assets.records.ranges import Columns

_WORKERS = 2


def columnar(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads batches that compiled kernels decode; every CRC is checked on the way.

    Shuffled, runs of records come in random order, and within windows of as many records as are drawn from, each record
    does.

    Raises:
        ConfigError: Records are tf.SequenceExamples, which are not decoded here, or lie behind a URL.
    """
    if any("://" in path for path in files.paths):
        raise ConfigError("the reader 'columnar' reads local files only; use reader='autotuned'")
    size = options.batch_size
    names, share = base_names(files.features), share_of(files.records, options.shard)
    window = -(-options.shuffle // size) * size or size
    static = options.drop_remainder and not options.shuffle
    crossing = _Crossing(files.features, size if static else None)
    skip, epochs = options.on_error == "skip", count()

    def open_batches() -> Batches:
        seed = None if options.seed is None else (options.seed, next(epochs))
        order = np.random.default_rng(seed) if options.shuffle else None
        return Batches(files, names, window, share, skip, _WORKERS, static, order=order)

    open_batches().close()  # what it refuses is refused at once

    def generate() -> Iterator[tuple[Any, ...]]:
        with open_batches() as found:
            try:
                for batch in found:
                    yield (*crossing.take_apart(batch), "")
            except TfrError as error:  # as a value: an exception would reach training code as a stack trace
                yield (*crossing.nothing(), str(error))

    @tf.autograph.experimental.do_not_convert
    def put_together(*crossed: tf.Tensor) -> Tensors:
        parts, problem = crossed[:-1], crossed[-1]
        with tf.control_dependencies([tf.debugging.Assert(tf.equal(problem, ""), [problem])]):
            return crossing.put_together(tuple(map(tf.identity, parts)))

    signature = (*crossing.signature, tf.TensorSpec((), tf.string))
    dataset = tf.data.Dataset.from_generator(generate, output_signature=signature)
    dataset = dataset.map(put_together, num_parallel_calls=tf.data.AUTOTUNE)
    if options.shuffle:
        dataset = _shuffled(dataset, files.features, options)
    if not skip:
        whole, rest = divmod(share[1] - share[0], size)
        expected = whole + bool(rest and not options.drop_remainder)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(expected))
    if options.decode:
        dataset = dataset.map(decoder(options.decode), num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(tf.data.AUTOTUNE)


def _shuffled(windows: tf.data.Dataset, features: FeatureSpec, options: ReadOptions) -> tf.data.Dataset:
    """Makes batches of windows, each a multiple of the batch's size but the last, in a random order."""
    size = options.batch_size
    specs = element_spec(features, size if options.drop_remainder else None)

    def batches_of(window: Tensors, seed: tf.Tensor) -> tf.data.Dataset:
        rows = tf.shape(next(iter(window.values())), tf.int64)[0]
        order = tf.random.experimental.stateless_shuffle(tf.range(rows), tf.stack([seed, 0]))
        chosen = tf.data.Dataset.from_tensor_slices(order).batch(size, drop_remainder=options.drop_remainder)
        return chosen.map(lambda some: {name: _taken(tensor, some, specs[name]) for name, tensor in window.items()})

    seeds = tf.data.Dataset.random(options.seed, rerandomize_each_iteration=True)
    return tf.data.Dataset.zip(windows, seeds).flat_map(batches_of)


def _taken(tensor: tf.Tensor | tf.RaggedTensor, rows: tf.Tensor, spec: tf.TypeSpec) -> tf.Tensor | tf.RaggedTensor:
    """Returns some rows of a tensor, with the shape that they are known to have."""
    found = tf.gather(tensor, rows)
    if not isinstance(found, tf.RaggedTensor):
        return tf.ensure_shape(found, spec.shape)
    splits = tf.ensure_shape(found.row_splits, (None if spec.shape[0] is None else spec.shape[0] + 1,))
    return tf.RaggedTensor.from_row_splits(found.values, splits, validate=False)


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

    def nothing(self) -> list[Any]:
        """Returns what crosses of no batch, where only a problem is to be told."""
        return [
            b"" if spec.dtype == tf.string else np.zeros([size or 0 for size in spec.shape], spec.dtype.as_numpy_dtype)
            for spec in self.signature
        ]

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
