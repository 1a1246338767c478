"""Copies a dataset, or a folder of TFRecord files, to an object store: what is there stays, manifests come last.

What readers need is sent: shards, merged files, what describes them, and the report. Raw data, the inventory and
measurements stay here.
"""

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfr_assets.errors import ConfigError, DamagedFile, WriteError
from tfr_assets.layout import Layout, feature_spec_path, index_path, manifest_path, name_in
from tfr_assets.records.frames.examine import is_intact
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.atomic import refusals
from tfr_assets.storage.locks import lock, unlock
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.lease import Lease, hold_lease
from tfr_assets.storage.objects.multipart import abort_uploads
from tfr_assets.storage.objects.publish import publish_file
from tfr_assets.storage.objects.store import store_of
from tfr_assets.storage.remote_folders import contents_of
from tfr_assets.units import Advance
from tfr_assets.urls import url_of
from tfr_assets.writing.audit import audit_folder
from tfr_assets.writing.export.tfds import FEATURES, INFO
from tfr_assets.writing.export.tfds_features import LABELS
from tfr_assets.writing.places import remove_from_store
from tfr_assets.writing.stray import MERGED, SHARD

_AT_ONCE = 2  # files, each in several parts
_SHOWN = 5  # faults
_PARTS = ("shards", "merged")  # folders of a dataset that are sent


@dataclass(frozen=True)
class Published:
    """What was done.

    Attributes:
        url: Where the files are.
        sent: Number of TFRecord files that were sent.
        kept: Number of those that were there.
        removed: Number of those that are no longer of the dataset.
        bytes: Size of what was sent.
        seconds: Time it took.
    """

    url: str
    sent: int
    kept: int
    removed: int
    bytes: int
    seconds: float


def publish(folder: Path, url: str, progress: Advance | None = None, is_locked: bool = False) -> Published:
    """Makes a folder of an object store hold what a local one holds, for readers.

    Each file is verified before it is sent, and visible only with its manifest. Whatever interrupts this, no manifest
    stays beside a file that it does not describe; the next call completes.

    Args:
        folder: A dataset's folder, or a folder of TFRecord files with manifests.
        url: The folder there.
        progress: Called with the number of bytes just sent, or found to be there.
        is_locked: Whether the caller keeps runs away from the dataset, as a run does.

    Raises:
        ConfigError: There is nothing to publish.
        DamagedFile: Files here are missing or damaged.
        WriteError: The store refused, a run works on the dataset, or somebody else writes to the URL.
        SourceError: The store refused to be read.
    """
    started = time.perf_counter()
    if lies := url_of(folder):
        raise ConfigError(f"{lies} lies in an object store already, where readers find it; publish what lies on a disk")
    there = ObjectFolder(url.rstrip("/"))
    store_of(there.bucket)  # says what to install
    is_dataset = any((folder / part).is_dir() for part in _PARTS)
    parts = [part for part in (_PARTS if is_dataset else ("",)) if any((folder / part / "manifest").glob("*.json"))]
    if not parts:
        raise ConfigError(f"{folder} holds no TFRecord files with manifests; write them with `tfr run` first")
    with _unchanged(folder, is_dataset and not is_locked):
        for part in parts:
            _check(folder / part)
        with hold_lease(there) as lease:
            done = [_publish_part(folder / part, _below(there, part), lease, progress) for part in parts]
            report = Layout(name_in(folder), folder).report if is_dataset else None
            if report and report.is_file():
                there.put(report.name, report.read_bytes())
    sent, kept, removed, size = (sum(counts) for counts in zip(*done, strict=True))
    return Published(there.url, sent, kept, removed, size, time.perf_counter() - started)


@contextmanager
def _unchanged(folder: Path, needs_lock: bool) -> Iterator[None]:
    """Lets no run work on a dataset while the block runs."""
    if not needs_lock:
        yield
        return
    with refusals(folder):
        file = lock(Layout(name_in(folder), folder).lock, wait=False)
    if file is None:
        raise WriteError(f"a run works on dataset {folder.name!r}; publish it when the run is done")
    try:
        yield
    finally:
        unlock(file)


def _check(folder: Path) -> None:
    if faults := audit_folder(folder).faults:
        more = [f"… and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        lines = "\n".join(f"  {line}" for line in [*faults[:_SHOWN], *more])
        raise DamagedFile(f"{folder} is not as it was written, so that nothing was published:\n{lines}")


def _below(folder: ObjectFolder, part: str) -> ObjectFolder:
    return ObjectFolder(f"{folder.url}/{part}") if part else folder


def _publish_part(
    folder: Path, there: ObjectFolder, lease: Lease, progress: Advance | None
) -> tuple[int, int, int, int]:
    """Publishes a folder of TFRecord files; returns how many were sent, kept and removed, and the bytes sent."""
    names = sorted(manifest.stem for manifest in (folder / "manifest").glob("*.json"))
    ours = rf"{re.escape(names[0].partition('-')[0])}({SHARD}|{MERGED})|" + "|".join(map(re.escape, names))
    abort_uploads(there, rf"(index/)?({ours})(\.idx)?")
    current = _current(folder, there, names)
    outdated = [name for name in names if name not in current]
    if outdated:
        there.delete([INFO])  # without it, nothing is read of what will not hold

    def send(name: str) -> int:
        size = _send(folder / name, there, lease)
        if progress:
            progress(size)
        return size

    if progress:
        progress(sum((folder / name).stat().st_size for name in current))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sizes = list(pool.map(send, outdated))
    removed = remove_from_store(there, lease, ours, set(names))
    _describe(folder, there, lease)
    return len(outdated), len(current), len(removed), sum(sizes)


def _current(folder: Path, there: ObjectFolder, names: Sequence[str]) -> set[str]:
    """Returns the files that the store has already, by their manifests and sizes."""
    listed = there.list("manifest")
    found = contents_of(f"{there.url}/manifest", [f"{name}.json" for name in names if f"{name}.json" in listed])
    sizes, indexes = there.list(), there.list("index")
    current = set()
    for name in names:
        content = manifest_path(folder / name).read_bytes()
        manifest = Manifest.from_json(content, name)
        if manifest is None or found.get(f"{name}.json") != content or name not in sizes:
            continue
        index, there_index = manifest.index, indexes.get(f"{name}.idx")
        has_index = there_index is None if index is None else there_index and there_index.size == index.bytes
        if sizes[name].size == manifest.bytes and has_index:
            current.add(name)
    return current


def _send(path: Path, there: ObjectFolder, lease: Lease) -> int:
    content = manifest_path(path).read_bytes()
    manifest = Manifest.from_json(content, path.name)
    if manifest is None or not is_intact(path, manifest):
        raise DamagedFile(f"{path} is not what its manifest says; `tfr verify {path.parent}` tells more")
    publish_file(there, path, lease, content)
    return manifest.bytes + index_path(path).stat().st_size


def _describe(folder: Path, there: ObjectFolder, lease: Lease) -> None:
    """Sends what describes shards, first the feature spec, last what TensorFlow Datasets begins with."""
    labels = [path.name for path in sorted(folder.glob(f"*{LABELS}"))]
    names = [feature_spec_path(folder).name, FEATURES, *labels, INFO]
    lease.check()
    listed = there.list()
    for name in names:
        if (folder / name).is_file():
            there.put(name, (folder / name).read_bytes())
    gone = [name for name in listed if name not in names and name.endswith(LABELS)]
    there.delete([*gone, *(name for name in names if name in listed and not (folder / name).is_file())])
