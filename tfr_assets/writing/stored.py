"""Functions for stored TFRecord files: `tfr_assets.verify`, `inspect` and `merge`. Imports little until then."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tfr_assets.errors import ConfigError, DamagedFile
from tfr_assets.layout import data_root, index_path

if TYPE_CHECKING:
    from tfr_assets.records.examples.inspect import Inspection
    from tfr_assets.records.frames.examine import FileReport
    from tfr_assets.records.frames.manifest import Manifest
    from tfr_assets.writing.audit import Note

_NAME = re.compile(r"\.tfr|[_-]tfrecords?(-\d|\.(gz|gzip|zlib|zz?)$|$)")
_OURS = {"index", "manifest"}


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
            for name in sorted(promised.union(name for name in names if _looks_like_one(name))):
                found[here / name] = None
    return list(found)


def _looks_like_one(name: str) -> bool:
    lower = name.lower()
    return not lower.startswith(".") and _NAME.search(lower) is not None and not lower.endswith((".json", ".idx"))


def _is_written_here(path: Path) -> bool:
    """Whether what lies below `manifest` for a file is a manifest of ours, also a damaged one."""
    from tfr_assets.records.frames.manifest import Manifest

    return _looks_like_one(path.name) or index_path(path).exists() or Manifest.load(path) is not None


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
        what: Name of a dataset; or a path of a file, or of a folder, which is searched at any depth. A string is a
            path when it holds a `/`, `.` or `~`.
        max_record_bytes: Length beyond which a record is a fault; None: 256 MiB, or more if the manifest says that the
            file's records have more in all.

    Returns:
        A report of each file, and of what else is wrong beside them.

    Raises:
        ConfigError: There is no such dataset, file or folder, or no TFRecord file in it.
    """
    from tfr_assets.records.frames.examine import examine_files

    path = _existing(what)
    files = find_record_files([path])
    beside, _ = audit_folders([path])
    if not files and not beside:
        raise ConfigError(f"there is no TFRecord file in {path}")
    return [*examine_files(files, max_record_bytes=max_record_bytes), *beside]


def inspect(path: str | os.PathLike[str], *, first: int = 3, max_record_bytes: int | None = None) -> "Inspection":
    """Reads any TFRecord file once and describes it, as `tfr inspect` does: counts, sizes, features, first records.

    ```python
    import tfr_assets

    tfr_assets.inspect("names.tfrecord").features
    ```

    Args:
        path: The file.
        first: Number of records to keep.
        max_record_bytes: As for `verify`.

    Raises:
        ConfigError: There is no such file.
    """
    from tfr_assets.records.examples.inspect import inspect_file

    file = Path(path).expanduser()
    if not file.is_file():
        raise ConfigError(f"there is no file {file}")
    return inspect_file(file, first, max_record_bytes)


def merge(files: Iterable[str | os.PathLike[str]], target: str | os.PathLike[str]) -> "Manifest":
    """Joins TFRecord files with manifests into one, in the given order, by copying bytes; no record is decoded.

    ```python
    import tfr_assets

    tfr_assets.merge(sorted(Path("out/names").glob("names-*")), "all.tfrecord")
    ```

    Each file is verified before, and the result is read back before it takes its name.

    Args:
        files: Files of one compression and of the same features, each with its manifest.
        target: The file to write, with index and manifest.

    Returns:
        The manifest of the merged file.

    Raises:
        ConfigError: There is no file to merge, they have different features, or the target is one of them.
        DamagedFile: A file is gone, damaged or without a manifest, or compressions differ.
        WriteError: The file system refused. In every case, what lay under the target's name is as it was.
    """
    from tfr_assets.records.frames.examine import examine_written
    from tfr_assets.records.frames.merge import merge_files
    from tfr_assets.storage.atomic import refusals

    if isinstance(files, str | os.PathLike):
        raise ConfigError(f"files={str(files)!r}: give a list of files, such as sorted(folder.glob('names-*'))")
    paths = [Path(file).expanduser() for file in files]
    place = Path(target).expanduser().absolute()
    if place.resolve() in {path.resolve() for path in paths}:
        raise ConfigError(f"{place} is one of the files to merge, and would be overwritten; give another target")
    inputs: list[tuple[Path, Manifest]] = []
    for path in paths:
        report, manifest = examine_written(path)
        if not report.ok:
            raise DamagedFile(f"{path} cannot be merged: {report.faults[0] if report.faults else 'it is damaged'}")
        if manifest is None:
            raise DamagedFile(f"{path} cannot be merged: it has no manifest, which `tfr_assets.write` makes")
        inputs.append((path, manifest))
    if not inputs:
        raise ConfigError("there is no file to merge")
    features = inputs[0][1].features
    if any(manifest.features != features for _, manifest in inputs):
        raise ConfigError("files of different features cannot be merged; their manifests differ in `features`")
    made_from = {"merge": [manifest.digest for _, manifest in inputs]}
    with refusals(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        return merge_files(inputs, place, features, made_from)


def _existing(what: str | os.PathLike[str]) -> Path:
    path = Path(what).expanduser()
    if isinstance(what, str) and not re.search("[/.~]", what) and not path.exists():
        path = data_root() / what
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
