"""Writes one TFRecord file with its index and manifest, whole or not at all."""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.examples.encoder import Frames
from tfr_assets.records.frames.compression import Compressor
from tfr_assets.records.frames.index import index_lines
from tfr_assets.records.frames.manifest import FRAMING, IndexChecksum, Manifest
from tfr_assets.records.frames.marks import Marker
from tfr_assets.records.kernels.crc32c import crc32c
from tfr_assets.records.kernels.digest import to_text
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.storage.atomic import atomic_file, remove_durably, settle
from tfr_assets.storage.reserve import FlushedFile


class FileWriter:
    """A context that takes frames; if it ends without an error, data and index get their names and a manifest.

    The old manifest goes before the old file is replaced, and the new one comes last: whenever this is interrupted, no
    manifest stays beside a file that it does not describe.

    Attributes:
        manifest: What the file holds, once the context was left without an error.

    Raises:
        WriteError: The file system refused; what was there before is untouched. An `OSError` of `append` becomes one
            when it leaves the context.
    """

    manifest: Manifest

    def __init__(
        self,
        path: Path,
        compression: str = "none",
        features: FeatureSpec | None = None,
        made_from: dict[str, Any] | None = None,
    ) -> None:
        """Prepares; see `write_file`."""
        self._path, self._compression, self._features, self._made_from = path, compression, features, made_from or {}
        self._compressor = Compressor(compression)
        self._marker = Marker()
        self._index_bytes = self._index_crc = 0
        self._files = ExitStack()

    @property
    def records(self) -> int:
        """Number of records so far."""
        return self._marker.end.records

    def __enter__(self) -> "FileWriter":
        with ExitStack() as files:
            self._index = FlushedFile(files.enter_context(atomic_file(index_path(self._path))))
            self._data = FlushedFile(files.enter_context(atomic_file(self._path)))
            self._files = files.pop_all()
        return self

    def append(self, frames: Frames) -> None:
        """Writes frames after those before; they may be overwritten afterwards.

        Raises:
            OSError: The file system refused; leave the context with it.
        """
        lines = index_lines(frames.sizes, self._marker.end.bytes)
        self._index.write(lines)
        self._index_bytes += len(lines)
        self._index_crc = crc32c(lines, self._index_crc)
        self._marker.append(frames.data, frames.sizes)
        self._data.write(self._compressor.feed(frames.data))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._files.__exit__(kind, error, trace)
            return
        with self._files:
            self._data.write(self._compressor.finish())
            self._index.end()
            self._data.end()
            size = os.fstat(self._data.descriptor).st_size
            settle(self._data.descriptor)  # a disk that refuses must do so while the old manifest is still there
            remove_durably(manifest_path(self._path))
        end = self._marker.end
        self.manifest = Manifest(
            file=self._path.name,
            records=end.records,
            bytes=size,
            payload_bytes=end.bytes - FRAMING * end.records,
            compression=self._compression,
            digest=to_text(end.digest),
            features=self._features,
            made_from=self._made_from,
            marks=self._marker.marks,
            index=IndexChecksum(self._index_bytes, self._index_crc),
        )
        self.manifest.save(self._path)


def write_file(
    path: Path,
    frames: Iterable[Frames],
    compression: str = "none",
    features: FeatureSpec | None = None,
    made_from: dict[str, Any] | None = None,
) -> Manifest:
    """Writes frames to `path`, then the index and the manifest beside it.

    Args:
        path: Final name.
        frames: The file's content, in order; each is written before the next is asked for.
        compression: `none`, `gzip` or `zlib`.
        features: How the records are parsed, for the manifest.
        made_from: What determines the content, for the manifest.

    Returns:
        The manifest.

    Raises:
        WriteError: The file system refused; what was there before is untouched.
    """
    with FileWriter(path, compression, features, made_from) as file:
        for some in frames:
            file.append(some)
    return file.manifest
