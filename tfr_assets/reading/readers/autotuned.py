"""The guides' whole recipe in its right order.

    files in parallel, about a megabyte of records in turn → shuffle → batch → parse batches in parallel → prefetch

Taking single records in turn, as most guides do, costs more than reading them. A megabyte at a time, it is free.
"""

import tensorflow as tf

from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.readers.serialized_records import batches
from tfr_assets.reading.readers.stepwise import parse_in_parallel


def autotuned(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads files in parallel, parses batches in parallel, and leaves it to tf.data how many at once."""
    return parse_in_parallel(batches(files, options, options.cycle_length, options.calls), files, options)
