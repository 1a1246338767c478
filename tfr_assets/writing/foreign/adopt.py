"""`tfr_assets.adopt`: TFRecord files of other origin become files as if they had been written here."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfr_assets.errors import ConfigError, SchemaError, StaleError

if TYPE_CHECKING:
    from tfr_assets.records.frames.manifest import Manifest


def adopt(path: str | os.PathLike[str], *, max_record_bytes: int | None = None) -> "dict[Path, Manifest]":
    """Verifies TFRecord files of other origin, and writes index, manifest and feature spec beside them.

    ```python
    import tfr_assets

    tfr_assets.adopt("./foreign")  # a folder of shards, or one file
    tfr_assets.open("./foreign")[3]
    ```

    The files themselves are only read. What their features are is inferred from all records: one value in each that
    has it makes a scalar, as many in each a fixed shape, other numbers a list; what only some have may be absent. Bytes
    stay bytes. Files whose names differ in their numbers only are one set. What has a manifest already is left alone.

    Args:
        path: A file; or a folder, whose own TFRecord files are adopted.
        max_record_bytes: Length beyond which a record is damage; None: 256 MiB.

    Returns:
        The manifests of the files that were adopted.

    Raises:
        ConfigError: There is no such file or folder, it is a URL, or there is no TFRecord file in it; or another index
            is there already.
        DamagedFile: A file is damaged; the message says which, at which record and byte. Nothing is written.
        SchemaError: Records are no tf.Examples, or not of one kind. Nothing is written.
        StaleError: Some files of a set have manifests, and others do not; or files of it are missing.
        WriteError: The file system refused.
    """
    from tfr_assets.layout import feature_spec_path, index_path, manifest_path
    from tfr_assets.records.examples.survey import Surveyed, survey
    from tfr_assets.records.frames.index import index_lines
    from tfr_assets.records.frames.manifest import IndexChecksum
    from tfr_assets.records.kernels.crc32c import crc32c
    from tfr_assets.storage.atomic import refusals, write_atomically
    from tfr_assets.storage.objects.store import refuse_url
    from tfr_assets.writing.foreign.sets import adopting_again, foreign_sets
    from tfr_assets.writing.shard import save_feature_spec

    if "://" in os.fspath(path):
        raise ConfigError(
            f"{os.fspath(path)}: nothing is written beside files by URL; they are read as they are, by "
            "tfr_assets.open, batches and read, which keep what they find on this machine"
        )
    refuse_url(path)
    place = Path(path).expanduser().absolute()
    sets = foreign_sets(place)
    for files in sets.values():
        if known := [file for file in files if manifest_path(file).exists()]:
            raise StaleError(
                f"{known[0]} has a manifest, but {sorted({*files} - {*known})[0].name} has none; to adopt all of them, "
                f"if none was written here, {adopting_again(known[0].parent)}"
            )
    surveyed: dict[str, tuple[list[Path], list[Surveyed]]] = {}
    for alike, files in sets.items():
        made_from = {"adopted": {"alike": alike, "files": len(files)}}
        surveyed[alike] = files, survey(files, made_from, max_record_bytes)[1]
    adopted: dict[Path, Manifest] = {}
    indexes: dict[Path, bytes] = {}
    for files, found in surveyed.values():
        for file, each in zip(files, found, strict=True):
            lines = bytes(index_lines(each.sizes, 0))
            adopted[file] = replace(each.manifest, index=IndexChecksum(len(lines), crc32c(lines, 0)))
            indexes[index_path(file)] = lines
    for path, lines in indexes.items():
        if path.exists() and path.read_bytes() != lines:
            raise ConfigError(f"{path} is there already, and is not the index that {path.stem} gets here; move it away")
    for path, lines in indexes.items():
        with refusals(path.parent):
            for folder in (path.parent, manifest_path(path.parent.parent / path.stem).parent):
                folder.mkdir(exist_ok=True)
            write_atomically(path, lines)
    for file, manifest in adopted.items():  # when all indexes are there: a set with some manifests is nobody's
        manifest.save(file)
    if place.is_dir() and len(sets) == 1 and not feature_spec_path(place).exists():
        manifest = next(iter(adopted.values()))
        if manifest.features:
            save_feature_spec(place, manifest.features, [file.name for file in adopted])
    if not adopted:
        raise ConfigError(f"{place}: there is no TFRecord file without a manifest, so nothing to adopt")
    return adopted


def described(paths: Sequence[Path], manifests: "Sequence[Manifest]") -> "tuple[Manifest, ...]":
    """Adds the features of records that were written serialized to their manifests, if they are tf.Examples.

    Returns:
        The manifests; as they were, where the records are something else.
    """
    from tfr_assets.records.examples.survey import survey

    try:
        spec, _ = survey(paths, {}, max(manifest.max_record_bytes for manifest in manifests))
    except SchemaError:
        return tuple(manifests)
    found = tuple(replace(manifest, features=spec) for manifest in manifests)
    for path, manifest in zip(paths, found, strict=True):
        manifest.save(path)
    return found
