"""What was found in files without manifests, kept in a cache folder, so that they are read to their ends only once.

    KEY.sizes    the size of each frame of each file, int64
    KEY.json     what the files were, their manifests, and the checksum of the sizes; written last

What is kept is used only for exactly the files that it was made of, by path, device, inode, size and time of change, or
by URL and version, and only if it is as it was written. Otherwise the files are read again.
"""

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tfr_assets.errors import WriteError
from tfr_assets.reading.locate.record_files import RecordFiles, Scanned
from tfr_assets.reading.locate.undescribed import REMOTE
from tfr_assets.records.examples.survey import LOCAL, Access, Identity, Surveyed, survey
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.sealed import seal, unseal
from tfr_assets.urls import scans_folder


@dataclass(frozen=True)
class KnownFile:
    """A file without manifest, of which all is known.

    Attributes:
        manifest: What it holds.
        sizes: int64 of shape (records,): sizes of its frames.
        identity: Which file it was when it was read.
    """

    manifest: Manifest
    sizes: np.ndarray
    identity: Identity


def foreign_files(paths: Sequence[Path | str], max_record_bytes: int | None, cache: Path | None) -> RecordFiles:
    """Returns files without manifests with what they hold. Arguments and errors as for `known_files`."""
    found = known_files(paths, max_record_bytes, cache)
    spec = found[0].manifest.features
    assert spec
    bounds = [np.cumsum([0, *each.sizes.tolist()], dtype=np.int64) for each in found]
    scanned = [Scanned(each.identity, ends) for each, ends in zip(found, bounds, strict=True)]
    names, manifests = tuple(map(str, paths)), tuple(each.manifest for each in found)
    files = RecordFiles(names, manifests, spec, scanned=dict(zip(names, scanned, strict=True)))
    return files.with_limit(max_record_bytes)


def known_files(paths: Sequence[Path | str], max_record_bytes: int | None, cache: Path | None) -> list[KnownFile]:
    """Returns what files hold, from the cache if it was kept there, else by reading them, and keeps it.

    Args:
        paths: Files of one kind of records, by absolute paths or URLs.
        max_record_bytes: As for `survey`.
        cache: The folder; None: nothing is kept of local files, and of others in a folder among the user's caches.

    Raises:
        DamagedFile: A file is damaged, or changed while it was read.
        SchemaError: Their records are no tf.Examples, or of several kinds.
        SourceError: A storage refuses.
        WriteError: The cache folder cannot be written to.
    """
    remote = is_remote(str(paths[0]))
    access, place = REMOTE if remote else LOCAL, cache or (scans_folder() if remote else None)
    if place and (kept := _kept(paths, max_record_bytes, place, access)):
        return kept
    found = [_known(each) for each in survey(paths, {}, max_record_bytes, access)[1]]
    if place and all(each.identity for each in found):  # else a change would not be noticed
        try:
            _keep(found, _key(paths, max_record_bytes, [each.identity for each in found]), place)
        except WriteError as error:
            if cache:
                raise
            warnings.warn(f"{paths[0]} is read to its end whenever it is opened, since {error}", stacklevel=2)
    return found


def _known(found: Surveyed) -> KnownFile:
    made_from = {"version": found.identity} if isinstance(found.identity, str) else {}
    return KnownFile(replace(found.manifest, made_from=made_from), found.sizes, found.identity)


def _key(paths: Sequence[Path | str], max_record_bytes: int | None, identities: Sequence[Identity]) -> list[Any]:
    files = [
        [str(path), [each] if isinstance(each, str) else [*each]] for path, each in zip(paths, identities, strict=True)
    ]
    return [files, max_record_bytes]


def _place(key: list[Any], cache: Path) -> Path:
    """Returns where it is kept: what was found in other versions of the same files goes."""
    paths = [path for path, _ in key[0]]
    return cache / f"{hashlib.sha256(json.dumps([paths, key[1]]).encode()).hexdigest()[:32]}.json"


def _keep(found: Sequence[KnownFile], key: list[Any], cache: Path) -> None:
    path = _place(key, cache)
    sizes = b"".join(each.sizes.astype("<i8").tobytes() for each in found)
    write_atomically(path.with_suffix(".sizes"), sizes)
    manifests = [each.manifest.to_json().decode() for each in found]
    write_atomically(path, seal({"files": key, "manifests": manifests, "sizes": hashlib.sha256(sizes).hexdigest()}))


def _kept(
    paths: Sequence[Path | str], max_record_bytes: int | None, cache: Path, access: Access
) -> list[KnownFile] | None:
    try:
        identities = [access.identity(path) for path in paths]
        path = _place(key := _key(paths, max_record_bytes, identities), cache)
        values, content = unseal(path.read_bytes()) or {}, path.with_suffix(".sizes").read_bytes()
    except OSError:
        return None  # nothing is kept, or a file is not there, which reading it tells
    if not all(identities) or values.get("files") != key or values.get("sizes") != hashlib.sha256(content).hexdigest():
        return None
    manifests = [Manifest.from_json(text) for text in values["manifests"]]
    whole = [manifest for manifest in manifests if manifest]
    if len(whole) < len(manifests):  # of another version
        return None
    bounds = np.cumsum([0, *(manifest.records for manifest in whole)])
    sizes = np.frombuffer(content, "<i8").astype(np.int64)
    parts = np.split(sizes, bounds[1:-1])
    return [KnownFile(*each) for each in zip(whole, parts, identities, strict=True)]
