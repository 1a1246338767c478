"""Files in object stores of which records are read by number: parts of them, fetched as they are asked for."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tfr_assets.errors import ConfigError, DamagedFile
from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.frames.compression import InputStream, PipedInput
from tfr_assets.records.frames.gather import Runs
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.segments import stale
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.ranges import PART, ObjectVersion, version_of
from tfr_assets.storage.pipe import has_ranges, open_piped

REACH = 512 << 10, PART
"""Bytes between two records for which one request costs less than two, and bytes of a request at most."""


class RemoteFile:
    """An object of which records are read, all of the version that was opened.

    Attributes:
        path: Its URL.
        size: Its bytes.
        bounds: int64 of shape (records + 1,): where each frame starts, and where the last one ends.
    """

    is_remote = True

    def __init__(self, version: ObjectVersion) -> None:
        self._version = version
        self.path, self.size = version.url, version.stat.size
        self.bounds = np.zeros(1, np.int64)

    def check(self) -> None:
        """Does nothing: what is fetched is of this version, or an error."""

    def read(
        self, runs: Runs, buffer: np.ndarray, problems: np.ndarray, scratch: np.ndarray, first: int, stop: int
    ) -> None:
        """Fetches some of the runs, a request each; arguments as for `Runs.read`.

        Raises:
            SourceError: The store refused, or the object was replaced.
        """
        for run in range(first, stop):
            content = np.frombuffer(self._version.fetch(*runs.ranges[run]), np.uint8)
            runs.put(run, content, buffer, problems)

    @contextmanager
    def stream(self) -> Iterator[InputStream]:
        """Opens all of it, as it lies there."""
        with open_piped(self.path, self.size) as descriptor:
            yield PipedInput(descriptor, self.size)


def check_reached(path: str) -> None:
    """Refuses URLs of which no parts can be fetched.

    Raises:
        ConfigError: It is one.
    """
    if not has_ranges(path):
        raise ConfigError(
            f"{path}: records are read by number from local files, and from s3://, gs:// and az:// with "
            "`pip install 'tfr-assets[s3]'`; copy the dataset, or read it in its order with tfr_assets.batches"
        )


def open_remote(url: str, manifest: Manifest) -> RemoteFile:
    """Opens an object.

    Raises:
        StaleError: It has another manifest than the one that was opened.
        DamagedFile: It has another size.
        SourceError: It is not there, or the store refused.
    """
    version = version_of(url)
    folder, _, name = url.rpartition("/")
    content = ObjectFolder(folder).get(str(manifest_path(Path(name))))
    if content is None or Manifest.from_json(content, name) != manifest:
        raise stale(url)
    if version.stat.size != manifest.bytes:
        raise DamagedFile(f"{url}: {version.stat.size} bytes, its manifest says {manifest.bytes}; get it again")
    return RemoteFile(version)


def fetched_index(url: str, manifest: Manifest) -> np.ndarray:
    """Returns the index of an object, as `read_index` does; raises as that, and SourceError where a store refuses."""
    folder, _, name = url.rpartition("/")
    content = ObjectFolder(folder).get(str(index_path(Path(name))))
    if content is None:
        raise FileNotFoundError(f"{url} has no index")
    with tempfile.NamedTemporaryFile(suffix=".idx") as file:
        file.write(content)
        file.flush()
        return read_index(Path(file.name), manifest.index)
