"""A part of a file, wherever it is → a stream of its bytes, as they are scanned."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfr_assets.errors import DamagedFile
from tfr_assets.reading.files import is_remote
from tfr_assets.reading.piped import open_piped
from tfr_assets.records.compression import CompressedInput, InputStream


@contextmanager
def opened(path: str, compression: str, start: int, stop: int) -> Iterator[InputStream]:
    """Opens a file, and closes it after the block.

    Args:
        path: The file, or its URL.
        compression: `none`, `gzip` or `zlib`.
        start: Byte at which to start reading; 0 for a compressed file or a URL.
        stop: Byte at which to end, or the file's size.

    Raises:
        DamagedFile: A local file cannot be read.
        SourceError: A remote one cannot be; after the block, if it has read all that came.
    """
    if is_remote(path):
        with open_piped(path, stop) as descriptor:
            yield _input(descriptor, compression, stop)
        return
    try:
        with Path(path).open("rb", buffering=0) as file:
            file.seek(start)
            yield _input(file.fileno(), compression, stop - start)
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}") from error


def _input(descriptor: int, compression: str, size: int) -> InputStream:
    return CompressedInput(descriptor, compression) if compression != "none" else _Bytes(descriptor, size)


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
