"""Which files of a folder that only grows belong to which slice. Each belongs to one, for good.

data/events/slices/000003/raw/files.json     the files of the third slice: those that were new when it began
"""

from collections.abc import Iterable

from tfr_assets.errors import StaleError
from tfr_assets.layout import APPENDED, Layout
from tfr_assets.storage.atomic import make_folder, refusals, write_atomically
from tfr_assets.storage.run_lock import hold_folder
from tfr_assets.storage.sealed import seal, unseal


def appended_slices(layout: Layout) -> list[str]:
    """Returns the keys of the slices of a dataset, in order."""
    return sorted(path.parents[1].name for path in layout.slices.glob(f"*/raw/{APPENDED}"))


def appended_files(layout: Layout) -> tuple[str, ...]:
    """Returns the files of a slice, given its layout; none, if there is no such slice.

    Raises:
        StaleError: The list of its files is damaged.
    """
    try:
        listed = unseal(layout.appended.read_bytes())
    except FileNotFoundError:
        return ()
    if listed is None:
        raise StaleError(
            f"{layout.appended}: is damaged, so it is not known which raw files this slice has. Remove the folder "
            f"{layout.folder}; its files become a new slice"
        )
    return tuple(listed["files"])


def files_of_all(layout: Layout) -> set[str]:
    """Returns the files that belong to slices of a dataset."""
    return {file for key in appended_slices(layout) for file in appended_files(layout.of_slice(key))}


def append_slice(layout: Layout, files: Iterable[str]) -> str | None:
    """Makes a slice of the files that belong to none. One process after the other: no file gets into two.

    Args:
        layout: Of the dataset.
        files: Paths, of which some may belong to slices.

    Returns:
        The slice's key, the number after the last one; None, if all files belong to slices.

    Raises:
        WriteError: The file system refused.
    """
    with refusals(layout.slices):
        make_folder(layout.slices)
        with hold_folder(layout.slices):
            new = sorted(set(files) - files_of_all(layout))
            if not new:
                return None
            last = max((int(key) for key in appended_slices(layout) if key.isdecimal()), default=0)
            key = f"{last + 1:06d}"
            write_atomically(layout.of_slice(key).appended, seal({"files": new}))
            return key
