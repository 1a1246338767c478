"""A part of a file, wherever it is → a stream of its bytes, as they are scanned."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfr_assets.errors import DamagedFile
from tfr_assets.records.frames.compression import CompressedInput, InputStream
from tfr_assets.records.frames.segments import Range, is_replaced, stale
from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.pipe import open_piped


@contextmanager
def open_range(wanted: Range) -> Iterator[InputStream]:
    """Opens the part of a file that must be read, and closes it after the block.

    Raises:
        DamagedFile: A local file cannot be read.
        StaleError: It is gone, and so is the manifest that was opened.
        SourceError: A remote one cannot be read; after the block, if it has read all that came.
    """
    if is_remote(wanted.path):
        start, stop = wanted.bytes_read
        with open_piped(wanted.path, wanted.manifest.bytes, start, stop) as descriptor:
            is_compressed = wanted.manifest.compression != "none"
            yield stream_of(descriptor, wanted) if is_compressed else _Bytes(descriptor, stop - start)
        return
    try:
        with Path(wanted.path).open("rb", buffering=0) as file:
            yield stream_of(file.fileno(), wanted)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and is_replaced(wanted.path, wanted.manifest):
            raise stale(wanted.path) from error
        raise DamagedFile(f"{wanted.path}: cannot be read: {error.strerror or error}") from error


def stream_of(descriptor: int, wanted: Range) -> InputStream:
    """Returns the part that must be read of an open file, at its beginning.

    Raises:
        OSError: The file system refused.
    """
    if wanted.manifest.compression != "none":
        return CompressedInput(descriptor, wanted.manifest.compression)
    start, stop = wanted.bytes_read
    if start:
        os.lseek(descriptor, start, os.SEEK_SET)
    return _Bytes(descriptor, stop - start)


class _Bytes:
    """The next bytes of a file, so many. They are read, not mapped: a file cut meanwhile is no crash."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self._left = descriptor, size
        self.size: int | None = size

    def read_into(self, target: memoryview) -> int:
        """See `InputStream`."""
        got = os.readv(self._descriptor, [target[: self._left]]) if self._left else 0
        self._left -= got
        return got
