"""The techniques of the performance guides, each alone, so that it shows what each of them buys.

TensorFlow by itself adds some of them to pipelines that lack them, such as a prefetch behind all. It must not, in the
first four.

naive          files one after another → parse a record → batch
prefetch       naive                                              → prefetch
interleave     files in turn, in parallel → parse a record → batch
parallel_map   files one after another → parse records in parallel → batch
vectorized     files one after another → batch → parse batches in parallel → prefetch
"""

import tensorflow as tf

from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.readers.parsing import batch_of_ones, parse_batch, parse_one
from tfr_assets.reading.readers.serialized_records import batches, records


def naive(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Does one thing after another, a record at a time."""
    return _without_rewriting(batch_of_ones(records(files, options).map(parse_one(files, options)), options))


def prefetch(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Makes the next batches while training works on this one."""
    return naive(files, options).prefetch(tf.data.AUTOTUNE)


def interleave(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Takes records of several files in turn and reads these in parallel.

    It hides the latency of remote storage. For small records on a local disk it costs more than it saves.
    """
    found = records(files, options, options.cycle_length, options.block_length, options.calls)
    return _without_rewriting(batch_of_ones(found.map(parse_one(files, options)), options))


def parallel_map(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Parses records in parallel, each alone."""
    parsed = records(files, options).map(parse_one(files, options), options.calls, options.deterministic)
    return _without_rewriting(batch_of_ones(parsed, options))


def vectorized(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads one file after another and parses whole batches in parallel.

    For small records this is the best of the stock pipelines.
    """
    return parse_in_parallel(batches(files, options), files, options)


def _without_rewriting(dataset: tf.data.Dataset) -> tf.data.Dataset:
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def parse_in_parallel(found: tf.data.Dataset, files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Parses batches of serialized records in parallel and keeps some ready."""
    return found.map(parse_batch(files, options), options.calls, options.deterministic).prefetch(tf.data.AUTOTUNE)
