"""Raw files of slices: each belongs to one, and a slice whose files have changed is to be made again."""

from collections.abc import Mapping

from tfr_assets.errors import SourceError, TfrError
from tfr_assets.sources import called, files_state, source_files
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.sealed import seal, unseal
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.outdated import outdated

RAW_CHANGED = "its raw files have changed"


def check_own_files(dataset: Dataset) -> None:
    """Makes sure that no raw file of a slice belongs to another slice, too.

    Raises:
        SourceError: One does.
    """
    assert dataset.slices and dataset.slice and dataset.sliced
    if dataset.slices.append:
        return
    files = (file.path for file in source_files(dataset.source))
    if shared := dataset.slices.shared_with(dataset.sliced, dataset.slice, files, dataset.slice_keys()):
        path, other = shared
        raise SourceError(
            f"{path}: belongs to the slice {dataset.slice} and to {other}, says {dataset.sliced}; write a pattern that "
            "tells them apart, best with a folder for each slice"
        )


def raw_state(dataset: Dataset) -> str:
    """Returns what changes when raw files of a slice do; nothing, where only a run can tell, or where there are none.

    Raises:
        SourceError: They cannot be listed.
    """
    if called(dataset.source):
        return ""
    try:
        return files_state(dataset.source)
    except SourceError as error:
        if not error.no_data:
            raise
        return ""


def save_raw_state(dataset: Dataset, state: str) -> None:
    """Saves what the raw files of a slice were when its inventory was taken."""
    write_atomically(dataset.layout.raw_state, seal({"files": state}))


def raw_changed(dataset: Dataset, state: str) -> bool | None:
    """Whether raw files of a slice are others than those that its inventory was taken of; None: it has none.

    Args:
        dataset: The slice.
        state: As `raw_state` gives it.
    """
    try:
        saved: Mapping[str, object] = unseal(dataset.layout.raw_state.read_bytes()) or {}
    except OSError:
        return None
    return saved.get("files") != state


def why_new(dataset: Dataset, state: str) -> str:
    """Returns why a slice is to be made, or made again; nothing, if all of it is there and current.

    Reads no data. A slice without raw files is not made, unless it was.

    Args:
        dataset: The slice.
        state: As `raw_state` gives it.
    """
    changed = raw_changed(dataset, state)
    if changed is None:
        return "it was not made yet" if state or called(dataset.source) else ""
    if changed:
        return RAW_CHANGED
    try:
        return "its files are missing or outdated" if outdated(dataset) else ""
    except TfrError as error:
        return str(error)


def why_stale(dataset: Dataset) -> str:
    """Returns why a slice that was made is to be made again; nothing, if it is current. Lists its raw files."""
    try:
        return why_new(dataset, raw_state(dataset))
    except (TfrError, OSError) as error:
        return str(error)
