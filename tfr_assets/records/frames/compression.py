"""Compressed TFRecord files: which compression a file has, and strict streams in and out.

TensorFlow ignores a missing gzip trailer, a wrong checksum at the end and everything after a zlib stream. Here
each is a `StreamFault`.
"""

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tfr_assets.errors import DamagedFile, TfrError
from tfr_assets.urls import url_of


@dataclass(frozen=True)
class Compression:
    """One way of compressing TFRecord files.

    Attributes:
        window_bits: What `zlib` takes for it; 0: nothing is compressed.
        tensorflow_name: What TensorFlow calls it; it takes any other word for none.
        concatenates: Whether files of it, one after the other, are a file of it.
    """

    window_bits: int
    tensorflow_name: str
    concatenates: bool = True


COMPRESSIONS = {
    "none": Compression(0, ""),
    "gzip": Compression(31, "GZIP"),
    "zlib": Compression(15, "ZLIB", concatenates=False),
}
HEAD = 12
"""Bytes of a file that show its compression."""

_CHUNK = 256 * 1024
_PIECE = 1 << 20  # decompressed at a time: besides what is asked for, no more than this is in memory


class StreamFault(Exception):
    """Compressed data that is damaged.

    Attributes:
        truncated: The data ends too early.
        offset: Byte of the compressed file near which it was noticed.
    """

    def __init__(self, message: str, offset: int, truncated: bool = False) -> None:
        super().__init__(message)
        self.offset = offset
        self.truncated = truncated


def detect_compression(head: bytes) -> str:
    """Returns the compression of a file that starts with `head` (12 bytes are enough).

    A first header whose CRC holds is plain whatever it looks like; otherwise the magic bytes decide.
    """
    from tfr_assets.records.kernels.crc32c import masked_crc32c  # not above: YAML is checked without compiled kernels

    if len(head) >= 12 and masked_crc32c(head[:8]) == int.from_bytes(head[8:12], "little"):
        return "none"
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    # the upper bytes of a damaged header's length are zeros, as five bytes of a zlib stream never are
    deflated = len(head) >= 2 and head[0] & 0x0F == 8 and head[0] >> 4 <= 7
    zlib_magic = deflated and int.from_bytes(head[:2], "big") % 31 == 0
    if zlib_magic and head[3:8] != bytes(5):
        return "zlib"
    return "none"


class InputStream(Protocol):
    """Where a file's frames come from."""

    size: int | None
    """Bytes in all; None where only the end tells."""

    def read_into(self, target: memoryview) -> int:
        """Fills the front of `target`; returns the number of bytes, 0 at the end. Raises StreamFault, OSError."""


class PlainInput:
    """The bytes of a file as they are."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size: int | None = os.fstat(descriptor).st_size

    def read_into(self, target: memoryview) -> int:
        """See `InputStream`."""
        return os.readv(self._descriptor, [target])


class CompressedInput:
    """The decompressed bytes of a gzip or zlib file, every checksum and trailer demanded."""

    size: int | None = None

    def __init__(self, descriptor: int, compression: str) -> None:
        self._descriptor = descriptor
        self._name = compression
        self._decompressor = zlib.decompressobj(COMPRESSIONS[compression].window_bits)
        self._pending = b""
        self._read = 0
        self._member_is_empty = True

    def read_into(self, target: memoryview) -> int:
        """See `InputStream`."""
        while True:
            if self._decompressor.eof and not self._next_member():
                return 0
            if not self._pending:
                self._pending = os.read(self._descriptor, _CHUNK)
                self._read += len(self._pending)
                if not self._pending:
                    raise StreamFault(f"{self._name} stream ends before its trailer", self._read, truncated=True)
            try:
                out = self._decompressor.decompress(self._pending, min(len(target), _PIECE))
            except zlib.error as error:
                near = self._read - len(self._pending)
                raise StreamFault(f"{self._name} stream is damaged: {error}", near) from error
            self._pending = self._decompressor.unconsumed_tail or self._decompressor.unused_data
            if out:
                target[: len(out)] = out
                self._member_is_empty = False
                return len(out)

    def _next_member(self) -> bool:
        if not self._pending:
            self._pending = os.read(self._descriptor, _CHUNK)
            self._read += len(self._pending)
        if not self._pending:
            return False
        offset = self._read - len(self._pending)
        if not COMPRESSIONS[self._name].concatenates:
            raise StreamFault("data after the zlib stream, which TensorFlow drops in silence", offset)
        if self._pending[:1] != b"\x1f":
            raise StreamFault("data after the gzip stream that is no gzip member", offset)
        if self._member_is_empty:
            raise StreamFault("data after an empty gzip member, which TensorFlow takes for the end", offset)
        self._decompressor = zlib.decompressobj(COMPRESSIONS[self._name].window_bits)
        self._member_is_empty = True
        return True


class PipedInput:
    """The bytes of a file that come through a pipe, as they are."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self.size: int | None = size

    def read_into(self, target: memoryview) -> int:
        """See `InputStream`."""
        return os.readv(self._descriptor, [target])

    @staticmethod
    def of(descriptor: int, size: int, compression: str) -> InputStream:
        """Returns the stream of a file of a known size, through a pipe."""
        if COMPRESSIONS[compression].window_bits:
            return CompressedInput(descriptor, compression)
        return PipedInput(descriptor, size)


class Opened(NamedTuple):
    """A TFRecord file that is open, at its beginning.

    Attributes:
        stream: Its frames.
        bytes: Its size.
        compression: What the content shows.
    """

    stream: InputStream
    bytes: int
    compression: str


Opener = Callable[[Any], AbstractContextManager[Opened]]
"""Opens a TFRecord file, by path or URL, and closes it after the block; raises an OSError where it cannot be read."""


@contextmanager
def open_file(path: Path) -> Iterator[Opened]:
    """Opens a file, or the object that it stands in for; see `Opener`."""
    if url := url_of(path):
        with open_object(url, path.stat().st_size) as opened:
            yield opened
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield open_descriptor(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def open_object(url: str, size: int) -> Iterator[Opened]:
    """Opens a TFRecord file of a known size in an object store, as a stream.

    Raises:
        OSError: It cannot be read.
    """
    from tfr_assets.storage.objects.ranges import chunks_of  # not above: most files are of this machine
    from tfr_assets.storage.pipe import open_piped

    try:
        head = b"".join(chunks_of(url, 0, min(HEAD, size)))
        with open_piped(url, size) as descriptor:
            compression = detect_compression(head)
            yield Opened(PipedInput.of(descriptor, size, compression), size, compression)
    except TfrError as error:
        if isinstance(error, DamagedFile):
            raise
        raise OSError(str(error)) from error


def open_descriptor(descriptor: int) -> Opened:
    """Returns an open file at its beginning, to which its position is moved.

    Raises:
        OSError: It cannot be read.
    """
    size = os.fstat(descriptor).st_size
    compression = detect_compression(os.pread(descriptor, HEAD, 0))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return Opened(open_input(descriptor, compression), size, compression)


def open_input(descriptor: int, compression: str) -> InputStream:
    """Returns the stream of an open file, at its beginning."""
    return CompressedInput(descriptor, compression) if COMPRESSIONS[compression].window_bits else PlainInput(descriptor)


class Compressor:
    """Compresses what is written; equal input gives equal bytes, since no time or name goes into the header."""

    def __init__(self, compression: str) -> None:
        bits = COMPRESSIONS[compression].window_bits
        self._compressor = zlib.compressobj(wbits=bits) if bits else None

    def feed(self, data: memoryview) -> bytes | memoryview:
        """Returns what can be written already."""
        return data if self._compressor is None else self._compressor.compress(data)

    def finish(self) -> bytes:
        """Returns the rest, with the trailer."""
        return b"" if self._compressor is None else self._compressor.flush()
