"""What was found in files without manifests, kept in a cache folder, so that they are read to their ends only once.

    KEY.sizes    the size of each frame of each file, int64
    KEY.json     what the files were, their manifests, and the checksum of the sizes; written last

What is kept is used only for exactly the files that it was made of, by path, device, inode, size and time of change,
and only if it is as it was written. Otherwise the files are read again.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfr_assets.records.examples.survey import Surveyed, survey
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.sealed import seal, unseal

Identity = tuple[int, int, int, int]


@dataclass(frozen=True)
class KnownFile:
    """A file without manifest, of which all is known.

    Attributes:
        manifest: What it holds.
        sizes: int64 of shape (records,): sizes of its frames.
        identity: Which file it was when it was read: device, inode, size, time of change.
    """

    manifest: Manifest
    sizes: np.ndarray
    identity: Identity


def identity_of(status: os.stat_result) -> Identity:
    """Returns what tells a file from any other, and from itself once it was written to."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def known_files(paths: Sequence[Path], max_record_bytes: int | None, cache: Path | None) -> list[KnownFile]:
    """Returns what files hold, from the cache if it was kept there, else by reading them, and keeps it.

    Args:
        paths: Files of one kind of records, by absolute paths.
        max_record_bytes: As for `survey`.
        cache: The folder; None: nothing is kept.

    Raises:
        DamagedFile: A file is damaged, or changed while it was read.
        SchemaError: Their records are no tf.Examples, or of several kinds.
        WriteError: The cache folder cannot be written to.
    """
    if cache and (kept := _kept(paths, max_record_bytes, cache)):
        return kept
    found = [_known(each) for each in survey(paths, {}, max_record_bytes)[1]]
    if cache:
        _keep(found, _key(paths, max_record_bytes, [each.identity for each in found]), cache)
    return found


def _known(found: Surveyed) -> KnownFile:
    return KnownFile(found.manifest, found.sizes, identity_of(found.status))


def _key(paths: Sequence[Path], max_record_bytes: int | None, identities: Sequence[Identity]) -> list[Any]:
    files = [[str(path), *identity] for path, identity in zip(paths, identities, strict=True)]
    return [files, max_record_bytes]


def _place(key: list[Any], cache: Path) -> Path:
    return cache / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}.json"


def _keep(found: Sequence[KnownFile], key: list[Any], cache: Path) -> None:
    path = _place(key, cache)
    sizes = b"".join(each.sizes.astype("<i8").tobytes() for each in found)
    write_atomically(path.with_suffix(".sizes"), sizes)
    manifests = [each.manifest.to_json().decode() for each in found]
    write_atomically(path, seal({"files": key, "manifests": manifests, "sizes": hashlib.sha256(sizes).hexdigest()}))


def _kept(paths: Sequence[Path], max_record_bytes: int | None, cache: Path) -> list[KnownFile] | None:
    try:
        identities = [identity_of(path.stat()) for path in paths]
        path = _place(key := _key(paths, max_record_bytes, identities), cache)
        values, content = unseal(path.read_bytes()) or {}, path.with_suffix(".sizes").read_bytes()
    except OSError:
        return None  # nothing is kept, or a file is not there, which reading it tells
    if values.get("files") != key or values.get("sizes") != hashlib.sha256(content).hexdigest():
        return None
    manifests = [Manifest.from_json(text) for text in values["manifests"]]
    whole = [manifest for manifest in manifests if manifest]
    if len(whole) < len(manifests):  # of another version
        return None
    bounds = np.cumsum([0, *(manifest.records for manifest in whole)])
    sizes = np.frombuffer(content, "<i8").astype(np.int64)
    parts = np.split(sizes, bounds[1:-1])
    return [KnownFile(*each) for each in zip(whole, parts, identities, strict=True)]
