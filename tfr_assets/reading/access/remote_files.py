"""Remote files of which records are read by number: parts of them, fetched as they are asked for."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tfr_assets.errors import DamagedFile
from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.examples.survey import Identity
from tfr_assets.records.frames.compression import InputStream, PipedInput
from tfr_assets.records.frames.gather import Runs
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.segments import stale
from tfr_assets.storage.objects.ranges import PART
from tfr_assets.storage.pipe import open_piped
from tfr_assets.storage.remote_folders import contents_of
from tfr_assets.storage.versions import RemoteVersion, version_at

REACH = 512 << 10, PART
"""Bytes between two records for which one request costs less than two, and bytes of a request at most."""


class RemoteFile:
    """A remote file of which records are read, all of the version that was opened.

    Attributes:
        path: Its URL.
        size: Its bytes.
        bounds: int64 of shape (records + 1,): where each frame starts, and where the last one ends.
    """

    is_remote = True

    def __init__(self, version: RemoteVersion, manifest: Manifest) -> None:
        assert version.fetch
        self.path, self.size, self._fetch = version.url, manifest.bytes, version.fetch
        self.bounds = np.zeros(1, np.int64)

    def check(self) -> None:
        """Does nothing: what is fetched is of this version, or an error."""

    def read(
        self, runs: Runs, buffer: np.ndarray, problems: np.ndarray, scratch: np.ndarray, first: int, stop: int
    ) -> None:
        """Fetches some of the runs, a request each; arguments as for `Runs.read`.

        Raises:
            SourceError: The storage refused, or the file was replaced.
        """
        for run in range(first, stop):
            content = np.frombuffer(self._fetch(*runs.ranges[run]), np.uint8)
            runs.put(run, content, buffer, problems)

    @contextmanager
    def stream(self) -> Iterator[InputStream]:
        """Opens all of it, as it lies there."""
        with open_piped(self.path, self.size) as descriptor:
            yield PipedInput(descriptor, self.size)


def open_remote(url: str, manifest: Manifest, identity: Identity | None) -> RemoteFile | None:
    """Opens a remote file; None: it must be fetched whole, since its storage gives no parts, or not of one version.

    Args:
        url: The file.
        manifest: What it must hold.
        identity: Which version it must be, if it has no manifest there; None: it has.

    Raises:
        StaleError: It is another one, or has another manifest than the one that was opened.
        DamagedFile: It has another size.
        SourceError: It is not there, or the storage refused.
    """
    found = version_at(url)
    if identity is None and _manifest_at(url) != manifest:
        raise stale(url)
    if identity and found.version != identity:
        raise stale(url)
    if found.size not in (None, manifest.bytes):
        if identity is not None:
            raise stale(url)
        raise DamagedFile(f"{url}: {found.size} bytes, its manifest says {manifest.bytes}; get it again")
    is_known = identity is None or identity
    return RemoteFile(found, manifest) if found.fetch and is_known and manifest.compression == "none" else None


def _manifest_at(url: str) -> Manifest | None:
    content = _beside(url, manifest_path)
    return Manifest.from_json(content, url.rpartition("/")[2]) if content else None


def fetched_index(url: str, manifest: Manifest) -> np.ndarray:
    """Returns the index of a remote file, as `read_index` does; raises as that, and SourceError if one refuses."""
    content = _beside(url, index_path)
    if content is None:
        raise FileNotFoundError(f"{url} has no index")
    with tempfile.NamedTemporaryFile(suffix=".idx") as file:
        file.write(content)
        file.flush()
        return read_index(Path(file.name), manifest.index)


def _beside(url: str, place: Callable[[Path], Path]) -> bytes | None:
    """Returns what a file holds that lies where a function says, seen from the folder of a URL."""
    folder, _, name = url.rpartition("/")
    beside = str(place(Path(name)))
    try:
        return contents_of(folder, [beside])[beside]
    except FileNotFoundError:
        return None
