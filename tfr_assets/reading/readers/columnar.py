"""The reader `columnar`: batches that compiled kernels decode, as a `tf.data.Dataset`.

Python only tells TensorFlow where rows lie in memory, many batches at a time; an op of our own makes tensors of them.
Where TensorFlow does not take the op, Python makes them.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count

import numpy as np
import tensorflow as tf

from tfr_assets.errors import TfrError
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.locate.shares import share_of
from tfr_assets.reading.native.decoded_batches import Batches
from tfr_assets.reading.readers.generators import from_generator
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.tensors import copied, op
from tfr_assets.reading.tensors.hand_over import HandedOver
from tfr_assets.reading.tensors.media import decoder
from tfr_assets.reading.tensors.serialized import parse_tensors
from tfr_assets.reading.tensors.spec import Tensors, element_spec
from tfr_assets.records.schema.features import SERIALIZED, FeatureSpec
from tfr_assets.storage.file_names import is_remote

_WORKERS = 2
_LARGE_RECORD = 1024  # bytes, on average, from which on strings are made where they are decoded
_last: set[HandedOver] = set()  # of epochs that have ended, of any dataset: what TensorFlow may not have fetched yet


def columnar(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads batches that compiled kernels decode; every CRC is checked on the way.

    Shuffled, runs of records come in random order, and within windows of as many records as are drawn from, each record
    does.

    Raises:
        ConfigError: A feature has no values by its shape.
    """
    tensors_of = _tensors_of()
    size = options.batch_size
    names, share = tuple(files.features.columns), share_of(files.records, options.shard)
    window = -(-options.shuffle // size) * size or size
    static = options.drop_remainder and not options.shuffle
    tensors = ColumnTensors(files.features, size if static else None, tensors_of)
    made = tensors_of is op.tensors_of and files.bytes >= _LARGE_RECORD * files.records
    skip, epochs = options.on_error == "skip", count()
    workers = options.cycle_length if is_remote(files.paths[0]) else _WORKERS

    def open_batches() -> Batches:
        seed = None if options.seed is None else (options.seed, next(epochs))
        order = np.random.default_rng(seed) if options.shuffle else None
        return Batches(
            files, names, window, options.shard, skip, workers, static, order=order, at_once=True, tensor_strings=made
        )

    open_batches().close()  # what it refuses is refused at once

    def generate() -> Iterator[np.ndarray]:
        held: deque[HandedOver] = deque()
        _last.difference_update([rows for rows in tuple(_last) if rows.fetched])
        try:
            with open_batches() as found:
                for columns in found:
                    held.append(HandedOver([columns[name] for name in names], tensors.data_types, window))
                    yield held[-1].batches
                    while held and held[0].fetched:
                        held.popleft()
        except TfrError as error:  # as a value: an exception would reach training code as a stack trace
            held.append(HandedOver([], [], 1, str(error)))
            yield held[-1].batches
        _last.update(held)  # an iterator that is dropped before does not come here: nothing is fetched then

    dataset = from_generator(generate, tf.TensorSpec((None, 4), tf.int64))
    dataset = dataset.unbatch().map(tensors.fetched, num_parallel_calls=tf.data.AUTOTUNE)
    if options.shuffle:
        dataset = _shuffle(dataset, files.features, options)
    if not skip:
        whole, rest = divmod(share[1] - share[0], size)
        expected = whole + bool(rest and not options.drop_remainder)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(expected))
    if options.decode:
        dataset = dataset.map(decoder(options.decode), num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(tf.data.AUTOTUNE)


@cache
def _tensors_of() -> Callable[[tf.Tensor, Sequence[tf.DType]], list[tf.Tensor]]:
    """Returns what makes tensors of what is handed over: the op, or slower code where TensorFlow does not take it."""
    try:
        op.register()
    except op.OpRefused as refused:
        warnings.warn(
            f"reader 'columnar' is slower with TensorFlow {tf.__version__}, which is not as expected: {refused}. "
            "Install a TensorFlow that tfr-assets was made for, or use reader='vectorized'",
            RuntimeWarning, stacklevel=4,
        )  # fmt: skip
        return copied.tensors_of
    return op.tensors_of


def _shuffle(windows: tf.data.Dataset, features: FeatureSpec, options: ReadOptions) -> tf.data.Dataset:
    """Makes batches of windows, each a multiple of the batch's size but the last, in a random order."""
    size = options.batch_size
    specs = element_spec(features, size if options.drop_remainder else None)

    def batches_of(window: Tensors, seed: tf.Tensor) -> tf.data.Dataset:
        rows = tf.shape(next(iter(window.values())), tf.int64)[0]
        order = tf.random.experimental.stateless_shuffle(tf.range(rows), tf.stack([seed, 0]))
        chosen = tf.data.Dataset.from_tensor_slices(order).batch(size, drop_remainder=options.drop_remainder)
        return chosen.map(lambda some: {name: _take_rows(tensor, some, specs[name]) for name, tensor in window.items()})

    seeds = tf.data.Dataset.random(options.seed, rerandomize_each_iteration=True)
    return tf.data.Dataset.zip(windows, seeds).flat_map(batches_of)


def _take_rows(tensor: tf.Tensor | tf.RaggedTensor, rows: tf.Tensor, spec: tf.TypeSpec) -> tf.Tensor | tf.RaggedTensor:
    """Returns some rows of a tensor, with the shape that they are known to have."""
    found = tf.gather(tensor, rows)
    if not isinstance(found, tf.RaggedTensor):
        return tf.ensure_shape(found, spec.shape)
    splits = tf.ensure_shape(found.row_splits, (None if spec.shape[0] is None else spec.shape[0] + 1,))
    return tf.RaggedTensor.from_row_splits(found.values, splits, validate=False)


class ColumnTensors:
    """The tensors of a batch.

    Args:
        features: How records are parsed.
        rows: Of every batch; None where the last one may have fewer.
        tensors_of: Gives the row splits and values of all columns, for what stands for a batch.

    Attributes:
        data_types: What TensorFlow calls the type of each column's values.
    """

    def __init__(
        self,
        features: FeatureSpec,
        rows: int | None,
        tensors_of: Callable[[tf.Tensor, Sequence[tf.DType]], list[tf.Tensor]],
    ) -> None:
        self._tensors_of = tensors_of
        self._features = {name: parts[0] for name, parts in features.columns.items()}
        specs = element_spec(features, rows)
        for name, feature in self._features.items():
            if feature.part == SERIALIZED:
                specs[name] = tf.TensorSpec((rows,), tf.string)
        self._specs = {name: specs[name] for name in self._features}
        self.data_types = [spec.dtype.as_datatype_enum for spec in self._specs.values()]

    @tf.autograph.experimental.do_not_convert
    def fetched(self, batch: tf.Tensor) -> Tensors:
        """Returns the tensors of a batch that was handed over."""
        ranks = {name: getattr(spec, "ragged_rank", 0) for name, spec in self._specs.items()}
        dtypes = [dtype for name, spec in self._specs.items() for dtype in (*[tf.int64] * ranks[name], spec.dtype)]
        fetched = iter(self._tensors_of(batch, dtypes))
        return {name: self._tensor(name, [next(fetched) for _ in range(ranks[name] + 1)]) for name in self._specs}

    def _tensor(self, name: str, parts: list[tf.Tensor]) -> tf.Tensor | tf.RaggedTensor:
        """Returns a tensor of its row splits, from the outside in, and its values."""
        spec, feature, (*splits, values) = self._specs[name], self._features[name], parts
        if not splits:
            values.set_shape(spec.shape)
            return parse_tensors(feature, values) if feature.part == SERIALIZED else values
        values.set_shape((None, *spec.shape[len(splits) + 1 :]))
        for level, split in enumerate(splits):
            split.set_shape((None if level or spec.shape[0] is None else spec.shape[0] + 1,))
        return tf.RaggedTensor.from_nested_row_splits(values, splits, validate=False)
