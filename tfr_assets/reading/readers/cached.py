"""The first epoch is kept, and all others come from there.

What is kept are parsed batches; where each epoch has an order of its own, serialized records.
"""

import dataclasses
import tempfile
import weakref
from pathlib import Path

import tensorflow as tf

from tfr_assets.errors import WriteError
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.readers.parsing import parse_batch
from tfr_assets.reading.readers.serialized_records import batches, rebatch, records_in
from tfr_assets.reading.readers.stepwise import parse_in_parallel
from tfr_assets.storage.locks import make_locked_folder, remove_abandoned_folders, remove_locked_folder

_PREFIX = "tfr-cache-"


def cache_memory(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Keeps the first epoch in memory, which must hold all of it."""
    return _cache(files, options, "")


def cache_file(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Keeps the first epoch in a temporary file, which goes with the dataset.

    The file is no other dataset's, so that what an interrupted run left half-written is never read; and it is removed
    by the next one who makes such a file.

    TensorFlow says of every first epoch, also of one that was whole, that it did not read the dataset fully.

    Raises:
        WriteError: There is no place for it.
    """
    lock, folder = _own_folder(Path(options.cache_folder or tempfile.gettempdir()))
    dataset = _cache(files, options, str(folder / "epoch"))
    # also when Python ends; datasets made of this one keep it alive
    weakref.finalize(dataset, remove_locked_folder, lock, folder)
    return dataset


def _cache(files: RecordFiles, options: ReadOptions, path: str) -> tf.data.Dataset:
    if options.shuffle:
        in_order = batches(files, dataclasses.replace(options, shuffle=0, drop_remainder=False)).cache(path)
        count = None if options.on_error == "skip" else records_in(files, options)
        return parse_in_parallel(rebatch(in_order, options, count), files, options)
    parsed = batches(files, options).map(parse_batch(files, options), options.calls, options.deterministic)
    # kept as their parts, because files hold no ragged tensors
    parts = parsed.map(lambda batch: tuple(tf.nest.flatten(batch, expand_composites=True)), options.calls)
    spec = parsed.element_spec
    whole = parts.cache(path).map(
        lambda *some: tf.nest.pack_sequence_as(spec, some, expand_composites=True), options.calls
    )
    return whole.prefetch(tf.data.AUTOTUNE)


def _own_folder(parent: Path) -> tuple[int, Path]:
    """Makes a folder, locked while this process lives, and removes those whose processes are gone."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned_folders(parent, _PREFIX)
        return make_locked_folder(parent, _PREFIX)
    except OSError as error:
        raise WriteError(f"cannot make a folder for the cache in {parent}: {error.strerror}; give another") from error
