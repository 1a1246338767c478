"""What to read: the name of a dataset or a path → one whole set of TFRecord files.

    "flights"                                    a dataset, below the folder of all ─┐
    data/flights                                 the same, by its folder            ─┴→ its shards, else its merged file
    data/flights/shards                          a folder of TFRecord files
    data/flights/merged/flights-train.tfrecord   one file
    https://example.org/flights                  the same, elsewhere: see `remote`

The manifests say which files there are: a set is all that is `-of-N`, and nothing is read without a manifest.
"""

import difflib
import os
import re
from pathlib import Path

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.layout import SLICES, Layout, holds_slices, manifest_path, mixes_slices, name_in
from tfr_assets.project import find_project
from tfr_assets.reading.locate.file_sets import (
    CHOICES,
    FileChoice,
    MissingSlices,
    SliceChoice,
    command_for,
    sets_of,
)
from tfr_assets.reading.locate.foreign import adopted_files, check_none_added
from tfr_assets.reading.locate.record_files import RecordFiles, gather, lines
from tfr_assets.reading.locate.remote import locate_url
from tfr_assets.reading.locate.slices import (
    choose_slices,
    join_slices,
    slices_in,
    unfinished_slices,
    warn_of_unfinished,
)
from tfr_assets.reading.locate.slices_at_url import check_none_chosen, locate_slices, slices_at
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.atomic import refusals
from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.mirror import catch_up
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.remote_folders import files_in
from tfr_assets.urls import place_of, url_of


def locate(
    what: str | os.PathLike[str],
    files: FileChoice | None = None,
    root: Path | None = None,
    split: str | None = None,
    sizes_must_fit: bool = True,
    slices: SliceChoice | None = None,
    missing_slices: MissingSlices = "raise",
    max_record_bytes: int | None = None,
    cache: Path | None = None,
) -> RecordFiles:
    """Returns the files to read. Opens manifests only; but files by URL that have none are read to their ends.

    Args:
        what: Name of a dataset; or a path: of a dataset's folder, of a folder of TFRecord files, or of one file. A
            string is a path when it holds a `/`, `.` or `~`.
        files: `shards` or `merged`, for a dataset; None: its shards if all are there, else its merged file.
        root: Folder of all datasets; None: `data_root()`.
        split: Which split; None: the only one, or `train`.
        sizes_must_fit: Whether to refuse files of another size than written.
        slices: Of a dataset whose raw data comes in slices: the first and the last one, a list of them, or a text such
            as `last`; None: all that are there.
        missing_slices: What is done where one of these is not there: `raise`, or `allow`, and it is left out.
        max_record_bytes: Length beyond which a record is damage, of files by URL without manifests; None: 256 MiB.
        cache: Folder in which is kept what was found in these; None: one among the user's caches.

    Raises:
        ConfigError: There is no such dataset, path, choice, split or slice, or records were written serialized.
        StaleError: Something must be written (again) first: files or slices are missing, or of several versions;
            or a folder holds slices as well as files of the whole dataset.
        SchemaError: Slices have other features.
        DamagedFile: A file differs from its manifest in size, or has none and is damaged.
        SourceError: A storage refuses.
        WriteError: `cache` cannot be written to.
    """
    if files not in (None, *CHOICES):
        raise ConfigError(f"files={files!r}: use 'shards', 'merged' or None: the shards if all are there, else merged")
    if not isinstance(what, str | os.PathLike):
        raise ConfigError(f"{what!r} must be the name of a dataset, a path or a URL")
    if isinstance(what, str) and is_remote(what):
        if found := slices_at(what):
            return locate_slices(found, files, split, sizes_must_fit, slices, missing_slices)
        check_none_chosen(what, slices)
        return locate_url(what, files, split, sizes_must_fit, max_record_bytes, cache)
    if isinstance(what, str) and not re.search("[/.~]", what):
        folder = _caught_up(Layout.of(what, root).folder)
        if not folder.is_dir():
            check_name(what, folder.parent)
        return _of_slices_or_dataset(folder, files, split, sizes_must_fit, slices, missing_slices)
    path = _caught_up(Path(os.fspath(what).removeprefix("file://")).expanduser())
    if not path.exists():
        raise ConfigError(f"there is no file or folder {path}; give the name of a dataset, or the path of its files")
    if holds_slices(path) or any((path / part).is_dir() for part in ("raw", *CHOICES)):
        return _of_slices_or_dataset(path, files, split, sizes_must_fit, slices, missing_slices)
    if slices is not None:
        raise ConfigError(f"slices={slices!r} chooses among a dataset's, but {path} is already chosen; leave it out")
    if files is not None:
        raise ConfigError(f"files={files!r} chooses among a dataset's, but {path} is already chosen; leave it out")
    if path.is_dir():
        return gather(_whole_set(path, split), sizes_must_fit)
    if split is not None:
        raise ConfigError(f"split={split!r} chooses among a dataset's, but {path} is one file; leave it out")
    return gather([path], sizes_must_fit)


def _caught_up(path: Path) -> Path:
    """Returns a path, after a look at what lies in the store that it stands in for, if it does."""
    if url_of(path) is not None and not path.is_file():
        with refusals(path):
            catch_up(path)
    return path


def check_name(name: str, root: Path) -> None:
    """Makes sure that a dataset is there or defined.

    Raises:
        ConfigError: It is neither; the message names the one that is probably meant.
        SourceError: The store refused, where datasets lie in one.
    """
    project = find_project()
    defined = _folders_in(project.defs) if project and project.defs else set()
    url = url_of(root)
    there = ObjectFolder(url).folders() if url else _folders_in(root)
    known = sorted({entry for entry in there | defined if entry[0] not in "_."})
    if name in known:
        return
    if close := difflib.get_close_matches(name, known, n=1):
        hint = f"did you mean {close[0]!r}?"
    elif Path(name).exists():
        hint = f"for the path in the working directory, write './{name}'"
    else:
        hint = f"there are {', '.join(known)}" if known else "there is none"
    raise ConfigError(f"there is no dataset {name!r} in {place_of(root)}; {hint}")


def _folders_in(parent: Path) -> set[str]:
    return {entry.name for entry in parent.iterdir() if entry.is_dir()} if parent.is_dir() else set()


def _of_slices_or_dataset(
    folder: Path,
    files: FileChoice | None,
    split: str | None,
    sizes_must_fit: bool,
    slices: SliceChoice | None,
    missing: MissingSlices,
) -> RecordFiles:
    if not holds_slices(folder):
        if slices is not None:
            raise ConfigError(f"slices={slices!r}: dataset {folder.name!r} has no slices; leave it out")
        return _of_dataset(folder, files, split, sizes_must_fit)
    if wrong := mixes_slices(folder):
        raise StaleError(wrong)
    there, known = slices_in(folder)
    keys = choose_slices(slices, missing, there, known, folder.name)
    if slices is None:
        warn_of_unfinished(unfinished_slices(folder, there), folder.name)
    return join_slices({key: _of_dataset(folder / SLICES / key, files, split, sizes_must_fit) for key in keys})


def _of_dataset(folder: Path, files: FileChoice | None, split: str | None, sizes_must_fit: bool) -> RecordFiles:
    chosen = CHOICES if files is None else (files,)
    there = [choice for choice in chosen if any((folder / choice / "manifest").glob("*.json"))]
    if not there:
        wanted = {None: "TFRecord files", "shards": "shards", "merged": "merged file"}[files]
        name, command = name_in(folder), command_for(str(folder / "shards" / name_in(folder)))
        raise StaleError(f"dataset {name!r} has no {wanted} in {folder} yet; run {command} first")
    try:
        paths = _whole_set(folder / there[0], split)
    except StaleError:
        if len(there) == 1:
            raise
        paths = _whole_set(folder / there[1], split)  # while shards are being written, the merged file can be read
    return gather(paths, sizes_must_fit)


def _whole_set(folder: Path, split: str | None) -> list[Path]:
    """Returns the files of the one set of a split in a folder that is complete: all of one name and one `-of-N`."""
    with_manifest = [manifest.stem for manifest in (folder / "manifest").glob("*.json")]
    if adopted := adopted_files(folder, with_manifest, split, lambda name: Manifest.load(folder / name)):
        check_none_added(folder, adopted)
        return [folder / name for name in adopted]
    names = sets_of(with_manifest, split, str(folder))
    sets = [[folder / name for name in each] for each in names]
    if not sets:
        raise StaleError(
            f"{folder} is not a dataset, and no manifest in {folder}/manifest says what its files must hold. Write "
            f"them with `tfr run`, or, if they are of other origin, run `tfr adopt {folder}`"
        )
    whole = [paths for paths in sets if not any(map(_lacks, paths))]
    if len(whole) == 1:
        return whole[0]
    command = command_for(str(sets[0][0]))
    if whole:
        raise StaleError(
            f"{folder} holds several sets; {command} removes outdated ones, or give the path of one file:\n"
            + lines(f"{paths[0].name}: {len(paths)} files" for paths in whole)
        )
    lacking = [line for paths in sets for path in paths if (line := _lacks(path))]
    raise StaleError(
        f"{folder} is not complete; {command} writes what is missing, or, if it is a copy, copy it again:\n"
        + lines(lacking)
    )


def names_with_manifest(path: str) -> list[str]:
    """Returns the names of the files that have a manifest in the folder of one, a path or a URL."""
    folder = f"{path.rpartition('/')[0] or '.'}/manifest"
    if is_remote(path):
        return [name.removesuffix(".json") for name in files_in(folder)]
    return [manifest.stem for manifest in Path(folder).glob("*.json")]


def _lacks(path: Path) -> str | None:
    if not path.is_file():
        return f"{path.name}: missing"
    return None if manifest_path(path).is_file() else f"{path.name}: has no manifest"
