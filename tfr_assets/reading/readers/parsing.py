"""Serialized records → tensors, by the batch or, as most guides do it, one at a time."""

from collections.abc import Callable

import tensorflow as tf

from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.tensors.media import AUDIO, batch_recordings, decoder, kind_of
from tfr_assets.reading.tensors.spec import Tensors, parser


def parse_batch(files: RecordFiles, options: ReadOptions) -> Callable[[tf.Tensor], Tensors]:
    """Returns a function from serialized records of shape (B,) to the tensors that `reading.tensors.spec` promises."""
    parse, decode = parser(files.features), decoder(options.decode)

    @tf.autograph.experimental.do_not_convert  # as `parser`
    def parse_and_decode(serialized: tf.Tensor) -> Tensors:
        return decode(parse(serialized))

    return parse_and_decode


def parse_one(files: RecordFiles, options: ReadOptions) -> Callable[[tf.Tensor], Tensors]:
    """Returns a function from one serialized record of shape () to its tensors, without the batch's dimension."""
    parse = parse_batch(files, options)

    @tf.autograph.experimental.do_not_convert
    def parse_single(serialized: tf.Tensor) -> Tensors:
        return {name: tensor[0] for name, tensor in parse(serialized[None]).items()}

    return parse_single


def batch_of_ones(ones: tf.data.Dataset, options: ReadOptions) -> tf.data.Dataset:
    """Batches what `parse_one` gave; rows of different length become ragged tensors."""
    batches = ones.ragged_batch(options.batch_size, options.drop_remainder, row_splits_dtype=tf.int64)
    if AUDIO not in map(kind_of, options.decode):
        return batches
    return batches.map(lambda tensors: batch_recordings(tensors, options.decode))
