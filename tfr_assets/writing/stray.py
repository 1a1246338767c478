"""Files in a folder of TFRecord files that do not belong to the current ones.

They are shards of an earlier number, what a killed process left between two steps, or copies under other names. A
folder of a dataset holds nothing but the dataset's own: whatever there is named as one of its files is removed once all
current files are there. What is named otherwise is somebody else's and stays.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.atomic import abandoned_files, remove, sync_folder
from tfr_assets.storage.sealed import unseal

SHARD, MERGED = r"-[A-Za-z0-9_]+\.tfrecord-\d{5}-of-\d{5}", r"-[A-Za-z0-9_]+\.tfrecord"


def places_of(folder: Path) -> dict[Path, str]:
    """Returns where TFRecord files, their indexes and their manifests lie, and what their names end in."""
    return {folder: "", index_path(folder / "any").parent: ".idx", manifest_path(folder / "any").parent: ".json"}


def names_in(folder: Path) -> set[str]:
    """Returns the names of all files in a folder, and of all that a manifest or an index there is for."""
    return {
        path.name.removesuffix(suffix)
        for place, suffix in places_of(folder).items()
        for path in place.glob(f"[!.]*{suffix}")
        if path.is_file()
    }


def read_manifest(path: Path) -> Manifest | None:
    """Returns the manifest of a file as `Manifest.load` does, but where the disk refuses to read it.

    Raises:
        OSError: The disk refused, so that it is unknown whether there is a manifest.
    """
    try:
        return Manifest.from_json(manifest_path(path).read_bytes(), path.name)
    except FileNotFoundError:
        return None


def remove_strays(folder: Path, pattern: str, current: Collection[str], only_with_manifest: bool = False) -> None:
    """Removes files whose names fit a pattern, except the current ones, with their indexes and manifests.

    Another process may be doing the same.

    Args:
        folder: Where they lie.
        pattern: Regular expression of the whole names of those that may go.
        current: Names of those that stay.
        only_with_manifest: Whether files without a manifest may be somebody else's, and stay.

    Raises:
        OSError: The file system refused.
    """
    ours = re.compile(pattern)
    old = [
        path
        for path in (folder / name for name in sorted(names_in(folder).difference(current)))
        if ours.fullmatch(path.name) and (not only_with_manifest or read_manifest(path))
    ]
    for path in old:
        remove(path)
        remove(index_path(path))
    _sync(places_of(folder) if old else ())
    for path in old:  # last, when all else is surely gone: a crash leaves nothing without a manifest
        remove(manifest_path(path))
    _sync(places_of(folder) if old else ())
    for place, suffix in places_of(folder).items():
        for temporary, name in abandoned_files(place).items():
            if ours.fullmatch(name.removesuffix(suffix)):
                with suppress(FileNotFoundError):
                    temporary.unlink()


def remove_damaged(path: Path) -> None:
    """Removes a sealed file that is not what was written; if the disk refuses, it stays, and `verify` names it."""
    with suppress(OSError):
        if unseal(path.read_bytes()) is None:
            remove(path)


def _sync(folders: Iterable[Path]) -> None:
    for folder in filter(Path.is_dir, folders):
        sync_folder(folder)
