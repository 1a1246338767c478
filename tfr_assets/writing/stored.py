"""Functions for stored TFRecord files: `tfr_assets.verify`, `inspect` and `merge`. Imports little until then."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tfr_assets.errors import ConfigError, DamagedFile
from tfr_assets.layout import data_root, index_path
from tfr_assets.urls import is_object_url

if TYPE_CHECKING:
    from tfr_assets.records.examples.inspect import Inspection
    from tfr_assets.records.frames.examine import FileReport
    from tfr_assets.records.frames.manifest import Manifest
    from tfr_assets.writing.audit import Note
    from tfr_assets.writing.remote.stand_in import StandIn

_NAME = re.compile(r"\.tfr|[_-]tfrecords?(-\d|\.(gz|gzip|zlib|zz?)$|$)")
_OURS = {"index", "manifest"}


def dataset_folder(name: str) -> Path:
    """Returns where the dataset of a name lies, or would lie; in an object store, after a look at what is there now.

    Raises:
        ConfigError: The store cannot be opened as it is configured.
        SourceError: It refused.
        WriteError: What stands in for it here cannot be written.
    """
    from tfr_assets.storage.atomic import refusals
    from tfr_assets.storage.mirror import catch_up

    folder = data_root() / name
    with refusals(folder):
        catch_up(folder)
    return folder


def find_record_files(paths: Iterable[Path]) -> list[Path]:
    """Returns the files that are named: a file as it is; of a folder, whatever looks like TFRecord, at any depth.

    These may be of any origin; those that belong to a dataset, `reading.locate` finds by their manifests. A file that
    only its manifest knows of is among them, so that it is reported as missing.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            if path.exists() or path.parent != data_root():  # a dataset's folder may not be there yet
                found[path] = None
            continue
        for folder, folders, names in os.walk(path):
            here = Path(folder)
            manifests = (here / "manifest").glob("*.json")  # some may be those of another program
            promised = {manifest.stem for manifest in manifests if _is_written_here(here / manifest.stem)}
            if promised:
                folders[:] = [name for name in folders if name not in _OURS]
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(promised.union(name for name in names if looks_like_records(name))):
                found[here / name] = None
    return list(found)


def looks_like_records(name: str) -> bool:
    """Whether a file of any origin is named as TFRecord files are."""
    lower = name.lower()
    return not lower.startswith(".") and _NAME.search(lower) is not None and not lower.endswith((".json", ".idx"))


def _is_written_here(path: Path) -> bool:
    """Whether what lies below `manifest` for a file is a manifest of ours, also a damaged one."""
    from tfr_assets.records.frames.manifest import Manifest

    return looks_like_records(path.name) or index_path(path).exists() or Manifest.load(path) is not None


def verify(what: str | os.PathLike[str], *, max_record_bytes: int | None = None) -> "list[FileReport]":
    """Reads TFRecord files from the disk and checks both CRCs of every record, as `tfr verify` does.

    ```python
    import tfr_assets

    for report in tfr_assets.verify("flights"):
        print(report.path, report.records, "ok" if report.ok else report.faults[0])
    ```

    Files with a manifest are compared with it: size, count, content, index, and that every record parses. In a folder,
    files are noticed that are missing or do not belong there. Any file can be verified, also one of others, of any
    compression.

    Args:
        what: Name of a dataset; or a path of a file, or of a folder, which is searched at any depth; or the URL of one
            in an object store. A string is a path when it holds a `/`, `.` or `~`.
        max_record_bytes: Length beyond which a record is a fault; None: 256 MiB, or more if the manifest says that the
            file's records have more in all.

    Returns:
        A report of each file, and of what else is wrong beside them.

    Raises:
        ConfigError: There is no such dataset, file or folder, or no TFRecord file in it.
        SourceError: A store refused.
    """
    from tfr_assets.records.frames.examine import examine_files
    from tfr_assets.writing.remote.stand_in import standing_in

    with standing_in([_existing(what)]) as there:
        files = find_record_files(there.paths)
        beside, _ = audit_folders(there.paths)
        if not files and not beside:
            raise ConfigError(f"there is no TFRecord file in {what}")
        reports = [*examine_files(files, max_record_bytes=max_record_bytes, opener=there.open), *beside]
        return [there.report(report) for report in reports]


def inspect(path: str | os.PathLike[str], *, first: int = 3, max_record_bytes: int | None = None) -> "Inspection":
    """Reads any TFRecord file once and describes it, as `tfr inspect` does: counts, sizes, features, first records.

    ```python
    import tfr_assets

    tfr_assets.inspect("names.tfrecord").features
    ```

    Args:
        path: The file, or its URL in an object store.
        first: Number of records to keep.
        max_record_bytes: As for `verify`.

    Raises:
        ConfigError: There is no such file.
        SourceError: A store refused.
    """
    from tfr_assets.records.examples.inspect import inspect_file
    from tfr_assets.writing.remote.stand_in import standing_in

    with standing_in([path_or_url(path)]) as there:
        if not there.paths[0].is_file():
            raise ConfigError(f"there is no file {path}")
        return there.inspection(inspect_file(there.paths[0], first, max_record_bytes, there.open))


def merge(files: Iterable[str | os.PathLike[str]], target: str | os.PathLike[str]) -> "Manifest":
    """Joins TFRecord files with manifests into one, in the given order, by copying bytes; no record is decoded.

    ```python
    import tfr_assets

    tfr_assets.merge(sorted(Path("out/names").glob("names-*")), "all.tfrecord")
    ```

    Each file is verified before, and the result is read back before it takes its name.

    Args:
        files: Files of one compression and of the same features, each with its manifest; or their URLs in an object
            store.
        target: The file to write, with index and manifest; or its URL. Files of one bucket of S3 are joined there:
            they are read to verify them, and nothing is sent but parts of less than 5 MB.

    Returns:
        The manifest of the merged file.

    Raises:
        ConfigError: There is no file to merge, they have different features, or the target is one of them.
        DamagedFile: A file is gone, damaged or without a manifest, or compressions differ.
        WriteError: The file system refused. In every case, what lay under the target's name is as it was.
    """
    from tfr_assets.writing.remote.stand_in import standing_in

    if isinstance(files, str | os.PathLike):
        raise ConfigError(f"files={str(files)!r}: give a list of files, such as sorted(folder.glob('names-*'))")
    paths = [path_or_url(file) for file in files]
    place = path_or_url(target)
    place = place if isinstance(place, str) else place.absolute()
    if _same(place) in set(map(_same, paths)):
        raise ConfigError(f"{place} is one of the files to merge, and would be overwritten; give another target")
    with standing_in(paths) as there, there.named():
        return _merge(there, place)


def _same(path: Path | str) -> Path | str:
    return path.rstrip("/") if isinstance(path, str) else path.resolve()


def _merge(there: "StandIn", target: Path | str) -> "Manifest":
    from tfr_assets.records.frames.examine import examine_written
    from tfr_assets.records.frames.merge import merge_files
    from tfr_assets.storage.atomic import refusals
    from tfr_assets.writing.remote.merge_in_store import fetch, merge_to_url

    sources = [there.source(path) for path in there.paths]  # before they are verified: what is joined is what was
    inputs: list[tuple[Path, Manifest]] = []
    for path in there.paths:
        report, manifest = examine_written(path, opener=there.open)
        shown, report = there.names(str(path)), there.report(report)
        if not report.ok:
            raise DamagedFile(f"{shown} cannot be merged: {report.faults[0] if report.faults else 'it is damaged'}")
        if manifest is None:
            raise DamagedFile(f"{shown} cannot be merged: it has no manifest, which `tfr_assets.write` makes")
        inputs.append((path, manifest))
    if not inputs:
        raise ConfigError("there is no file to merge")
    features = inputs[0][1].features
    if any(manifest.features != features for _, manifest in inputs):
        raise ConfigError("files of different features cannot be merged; their manifests differ in `features`")
    made_from = {"merge": [manifest.digest for _, manifest in inputs]}
    if isinstance(target, str):
        return merge_to_url(there, inputs, sources, target, features, made_from)
    fetch(there, there.paths)
    with refusals(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        return merge_files(inputs, target, features, made_from)


def path_or_url(path: str | os.PathLike[str]) -> Path | str:
    """Returns the URL of something in an object store as it is, and a path as one."""
    return path if isinstance(path, str) and is_object_url(path) else Path(path).expanduser()


def _existing(what: str | os.PathLike[str]) -> Path | str:
    path = path_or_url(what)
    if isinstance(path, str):
        return path
    if isinstance(what, str) and not re.search("[/.~]", what) and not path.exists():
        path = dataset_folder(what)
        if not path.is_dir():
            raise ConfigError(f"there is no dataset {what!r} in {path.parent}, and no such file or folder")
    elif not path.exists():
        raise ConfigError(f"there is no file or folder {path}")
    return path


def audit_folders(paths: Iterable[Path]) -> "tuple[list[FileReport], tuple[Note, ...]]":
    """Looks at what lies beside the TFRecord files of folders, at any depth.

    Returns:
        A report of each file that is wrong or missing; and what else should be known.
    """
    from tfr_assets.records.frames.examine import faulty_report
    from tfr_assets.writing.audit import Audit, audit_dataset, audit_folder

    found = Audit()
    for path in filter(Path.is_dir, paths):
        for folder, folders, names in os.walk(path):
            here = Path(folder)
            if _OURS & set(folders) or "feature_spec.json" in names:
                found += audit_folder(here)
            if (here / "raw" / "inventory.json").exists() or (here / "raw" / "shards.json").exists():
                found += audit_dataset(here)
            folders[:] = sorted(name for name in folders if name not in _OURS and not name.startswith("."))
    return [faulty_report(fault) for fault in found.faults], found.notes
