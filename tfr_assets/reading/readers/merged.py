"""The one file that holds all records of a split."""

import dataclasses
from pathlib import Path

import tensorflow as tf

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.reading.locate.file_sets import command_for
from tfr_assets.reading.locate.record_files import RecordFiles, gather
from tfr_assets.reading.locate.remote import locate_url
from tfr_assets.reading.locate.slices import by_slice, join_slices
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.readers.stepwise import vectorized
from tfr_assets.records.kernels.digest import combine, to_text
from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.remote_folders import files_in


def merged(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads the merged file in place of the shards it was made of.

    Raises:
        ConfigError: The files are no dataset's shards.
        StaleError: There is no merged file yet, or it holds other records.
        DamagedFile: It differs from its manifest in size, and damage is not to be skipped.
    """
    if len(files.paths) > 1:
        sets = [merged_of(each, sizes_must_fit=options.on_error != "skip") for each in by_slice(files)]
        whole = sets[0] if len(sets) == 1 else join_slices({each.paths[0]: each for each in sets})
        files = dataclasses.replace(whole, features=files.features)  # of which only some columns may be chosen
    return vectorized(files, options)


def merged_of(files: RecordFiles, sizes_must_fit: bool = True) -> RecordFiles:
    """Returns the merged file of a dataset's shards. Raises as `merged`; DamagedFile as `gather`."""
    folder, _, name = files.paths[0].rpartition("/")
    stem, place, _ = name.rpartition(".tfrecord-")
    if not place or folder.rpartition("/")[2] != "shards":
        raise ConfigError(f"reader 'merged' reads a dataset by its name, folder or URL, not {folder}; leave it out")
    beside, name = f"{folder.removesuffix('shards')}merged", f"{stem}.tfrecord"
    path, command = f"{beside}/{name}", command_for(files.paths[0])
    remote = is_remote(path)
    if not (name in files_in(beside) if remote else Path(path).is_file()):
        raise StaleError(f"there is no merged file {path}; {command} writes it")
    found = locate_url(path, None, None, sizes_must_fit) if remote else gather([Path(path)], sizes_must_fit)
    if found.records != files.records:
        raise StaleError(
            f"{path} holds {found.records} records, the shards {files.records}; {command} merges them again"
        )
    digest = 0
    for manifest in files.manifests:
        digest = combine(digest, int(manifest.digest, 16), manifest.records)
    if to_text(digest) != found.manifests[0].digest:
        raise StaleError(f"{path} holds other records than the shards; {command} merges them again")
    return found
