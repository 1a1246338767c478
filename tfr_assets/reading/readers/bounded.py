"""Any number of files under a hard ceiling of open files and memory.

    a few files at a time, a chunk of records each in turn → batch → parse as few at once as memory allows → prefetch 1

tf.data opens files ahead of the turn that they are read in, and keeps elements ready as it sees fit; both grow with
the machine. Here every buffer has a size.
"""

import os

import tensorflow as tf

from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.readers.parsing import parse_batch
from tfr_assets.reading.readers.serialized_records import CHUNK_BYTES, batches
from tfr_assets.storage.file_names import is_remote

_AHEAD = 3  # files that tf.data's interleave opens for each that it reads in turn
_COPIES = 4  # of a batch's bytes while it is parsed: as read, as batched, as parsed, as waiting


def bounded(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads with at most `options.open_files` open at once and about `options.memory` bytes under way."""
    handles = 2 if options.on_error == "raise" else 1  # ours, which keeps the file what was verified, and TensorFlow's
    cycle_length = max(1, min(options.cycle_length, options.open_files // (_AHEAD * handles)))
    if files.bytes < CHUNK_BYTES * len(files.paths) and not is_remote(files.paths[0]):
        cycle_length = 1  # small files are read in one go each, and taking turns costs more than it saves
    serialized = batches(files, options, cycle_length, cycle_length if cycle_length > 1 else None)
    calls = min(_batches_at_once(files, options), len(os.sched_getaffinity(0)))
    parsed = serialized.map(parse_batch(files, options), calls, options.deterministic).prefetch(1)
    limits = tf.data.Options()
    limits.autotune.enabled = False
    return parsed.with_options(limits)


def _batches_at_once(files: RecordFiles, options: ReadOptions) -> int:
    batch = options.batch_size * files.bytes // max(1, files.records)
    return max(1, options.memory // max(1, _COPIES * batch))
