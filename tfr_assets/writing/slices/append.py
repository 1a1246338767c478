"""Folders that only grow: what is new in one becomes a slice."""

from collections.abc import Mapping

from tfr_assets.errors import SourceError
from tfr_assets.sources import source_files
from tfr_assets.writing.appended import append_slice, files_of_all
from tfr_assets.writing.dataset import Dataset


def append_new(dataset: Dataset, seen: Mapping[str, str] | None = None) -> dict[str, str]:
    """Makes a slice of the raw files that belong to none, if there are any; nothing, where slices are not appended.

    Args:
        dataset: The dataset.
        seen: What the new files were at an earlier look, as it is returned. Those that were not there, or were others,
            may still be growing and are left. None: none is left.

    Returns:
        The new files that are left, each with what changes when it is written to.

    Raises:
        SourceError: They cannot be listed.
        StaleError: The list of a slice's files is damaged.
        WriteError: The file system refused.
    """
    if not dataset.slices or not dataset.slices.append:
        return {}
    new = _new_files(dataset)
    whole = [path for path, state in new.items() if seen is None or seen.get(path) == state]
    if whole:
        append_slice(dataset.whole_layout, whole)
    return {path: state for path, state in new.items() if path not in set(whole)}


def _new_files(dataset: Dataset) -> dict[str, str]:
    known = files_of_all(dataset.whole_layout)
    try:
        return {file.path: str(file.info()) for file in source_files(dataset.source) if file.path not in known}
    except SourceError as error:
        if not error.no_data:
            raise
        return {}
