"""One worker's share of the records, shuffled: all workers together get each record exactly once."""

import dataclasses

import tensorflow as tf

from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.autotuned import autotuned
from tfr_assets.reading.readers.options import ReadOptions

_SHUFFLE = 10_000


def sharded(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads `options.shard` of the records in random order.

    tf.data's own `shard` gives some workers nothing where files are fewer than workers, or makes each read everything.
    Here the records of all files in order are cut into even shares, and a file that belongs to two workers is read from
    the last mark before its record, which the manifest knows. A share stays the same in all epochs; its order does not.
    """
    return autotuned(files, dataclasses.replace(options, shuffle=options.shuffle or _SHUFFLE))
