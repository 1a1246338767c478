"""The reader `resumable`: a `tf.data.Dataset` whose iterators `tf.train.Checkpoint` saves, as a few numbers.

TensorFlow saves no iterator that depends on Python. So here Python only gives the batch of a number, which is the same
whenever it is asked for: the number, which TensorFlow saves, is all there is of a place.
"""

import hashlib
import threading
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfr_assets.errors import ConfigError, TfrError
from tfr_assets.reading.access.dataset import fingerprint_of
from tfr_assets.reading.access.decode import RecordDecoder
from tfr_assets.reading.access.gather import file_records
from tfr_assets.reading.access.order import order_of
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.locate.shares import share_of
from tfr_assets.reading.readers.columnar import ColumnTensors
from tfr_assets.reading.readers.generators import until_exit
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.tensors.copied import tensors_from
from tfr_assets.reading.tensors.media import decoder
from tfr_assets.records.arrow.arrays import Column

_THREADS = 2  # of which each reads and decodes a batch
_FIRSTS = 1 << 22  # numbers of first batches, each of …
_SPACE = 1 << 40  # … so many batches


def resumable(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads batches by the numbers of their records; both CRCs of each record are checked.

    Batches begin at a number that follows from the data and the options, so that a place in others is refused.

    Raises:
        ConfigError: A feature has no values by its shape.
    """
    size = options.batch_size
    files = files.absolute()
    first, stop = share_of(files.records, options.shard)
    batches = (stop - first) // size if options.drop_remainder else -(-(stop - first) // size)
    start = _start_of(files, options)
    most = _SPACE if options.repeat is None and batches else batches * (options.repeat or 0)
    source, names, own = file_records(files), tuple(files.features.columns), threading.local()

    def new_decoder() -> RecordDecoder:
        return RecordDecoder(source, files.features, names, nulls=False, skip=False)

    new_decoder()  # what it refuses is refused at once

    def rows_of(given: np.ndarray) -> tuple[str, Sequence[Column]]:
        seed, number = map(int, given)
        try:
            epoch, batch = divmod(number - start, max(1, batches))
            if not 0 <= number - start < most:
                raise ConfigError(
                    f"the iterator's checkpoint is of other data than {files.paths[0]} …, or of another batch size, "
                    "drop_remainder, shuffle, seed, share or number of epochs; read with the same, or start anew"
                )
            if not hasattr(own, "decoder"):
                own.decoder = new_decoder()
            begin = batch * size
            positions = np.arange(begin, min(begin + size, stop - first))
            order = order_of(stop - first, 0, options.shuffle, seed)  # of this share: workers may have other seeds
            columns, _ = own.decoder.decode(first + order.records(epoch, positions))
        except TfrError as error:
            return str(error), []
        return "", [columns[name] for name in names]

    def batch_of(given: tf.Tensor, dtypes: Sequence[tf.DType]) -> list[tf.Tensor]:
        return tensors_from(until_exit(rows_of), given, dtypes, stateful=False)

    tensors = ColumnTensors(files.features, size if options.drop_remainder else None, batch_of)

    def all_epochs(seed: tf.Tensor) -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(start, tf.int64.max).take(most)
        return numbers.map(lambda number: tensors.fetched(tf.stack([seed, number])), _THREADS, deterministic=True)

    seeds = tf.data.Dataset.random(options.seed, rerandomize_each_iteration=True).take(1)  # saved, once it is drawn
    cardinality = tf.data.INFINITE_CARDINALITY if most == _SPACE else most
    dataset = seeds.flat_map(all_epochs).apply(tf.data.experimental.assert_cardinality(cardinality))
    if options.decode:
        dataset = dataset.map(decoder(options.decode), num_parallel_calls=_THREADS)
    return dataset.prefetch(1)


def _start_of(files: RecordFiles, options: ReadOptions) -> int:
    """Returns the number of the first batch."""
    known = [
        fingerprint_of(files), options.batch_size, options.drop_remainder, options.shuffle, options.seed, options.shard,
        options.repeat,
    ]  # fmt: skip
    return int(hashlib.sha256(repr(known).encode()).hexdigest(), 16) % _FIRSTS * _SPACE
