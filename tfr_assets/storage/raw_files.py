"""Raw files: their bytes, and how a change of them is noticed.

Local files are opened as such, everything else through fsspec. A file is identified by the SHA-256 of its content, so
that a copy elsewhere counts as the same data. (SHA-256 is the fastest of the safe hashes on processors with SHA
instructions.) A remote store's checksum is not used instead: it differs between stores and ways to upload.
"""

import bz2
import gzip
import hashlib
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from tfr_assets.errors import ConfigError, SourceChanged, SourceError, TfrError
from tfr_assets.storage.file_names import endings, is_http, zip_members
from tfr_assets.storage.git_lfs import IS_POINTER, LOOK, is_pointer
from tfr_assets.storage.objects.failures import describe
from tfr_assets.storage.objects.store import filesystem_of, is_reached
from tfr_assets.urls import split_url

_CHUNK = 1 << 20
FileBatches = Iterator[tuple[int, pa.RecordBatch]]  # the number of the file, and rows from it
# What remote stores tell about a file's version; those that are there become the signature.
_MARKS = (
    *("size", "ETag", "etag", "e_tag", "Content-MD5", "content_md5", "md5Hash", "crc32c", "generation", "Digest"),
    *("LastModified", "Last-Modified", "last_modified", "mtime", "modified", "updated", "created"),
)


@dataclass(frozen=True)
class RawFile:
    """One file of a source.

    Attributes:
        path: Absolute path of a local file, otherwise its URL.
        format: One of `FORMATS`.
        storage_options: Passed to fsspec.
    """

    path: str
    format: str
    storage_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether it is opened as a local file; fsspec opens every URL, also `file://`."""
        return "://" not in self.path

    @property
    def endings(self) -> tuple[str, str]:
        """Lower-case ending of the format and of the compression, each empty if there is none."""
        return endings(self.path)

    def info(self) -> tuple[int, str]:
        """Returns the size in bytes and a signature that changes when the file does.

        The signature of a local file is made of its size, times and inode; of a remote one, of what its store says
        (size, entity tag, checksum, times). It costs no reading.

        Raises:
            FileNotFoundError: The file is not there.
        """
        if self.is_local:
            stat = Path(self.path).stat()
            marks: dict[str, Any] = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns}
            return stat.st_size, _signature({**marks, "inode": stat.st_ino})
        with backend_errors(self.path):
            fs, path = filesystem(self.path, self.storage_options)
            fs.invalidate_cache()
            info = fs.info(path)
        return int(info.get("size") or 0), _signature({key: info[key] for key in _MARKS if info.get(key) is not None})

    @property
    def seekable(self) -> bool:
        """Whether parts of it can be read without reading all before them (not so from simple web servers)."""
        if self.is_local or not is_http(self.path):
            return True
        with backend_errors(self.path):
            fs, path = filesystem(self.path, self.storage_options)
            return bool(fs.info(path).get("partial"))

    def open(self) -> BinaryIO:
        """Opens the file's bytes for reading at any position, if it is `seekable`."""
        if self.is_local:
            return Path(self.path).open("rb")
        with backend_errors(self.path):
            fs, path = filesystem(self.path, self.storage_options)
            return cast(BinaryIO, fs.open(path, "rb"))

    def stream(self, size: int | None = None) -> BinaryIO:
        """Opens the file's bytes for reading from begin to end; where its size is known, a web server is asked once."""
        if self.is_local or not is_http(self.path):
            return self.open()
        with backend_errors(self.path):
            fs, path = filesystem(self.path, self.storage_options)
            return cast(BinaryIO, fs.open(path, "rb", block_size=0, size=size))

    def chunks(self, size: int | None = None) -> Iterator[bytes]:
        """Yields the file's bytes; see `stream`."""
        with reading(self.path), self.stream(size) as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk

    def is_pointer(self) -> bool:
        """Whether it is only a git-LFS pointer to the file."""
        with reading(self.path), self.stream() as stream:
            return is_pointer(stream.read(LOOK))

    def content_hash(self, progress: Callable[[int], None] = lambda size: None) -> str:
        """Returns the SHA-256 of the content in hex; `progress` is called with the size of each part read.

        Raises:
            SourceError: It cannot be read, or is a git-LFS pointer.
        """
        digest = hashlib.sha256()
        for number, chunk in enumerate(self.chunks()):
            if not number and is_pointer(chunk):
                raise SourceError(f"{self.path}: {IS_POINTER}.")
            digest.update(chunk)
            progress(len(chunk))
        return digest.hexdigest()

    def texts(self) -> Iterator[tuple[str, BinaryIO]]:
        """Yields the decompressed content with its name for messages; a zip yields each of its files."""
        compression = self.endings[1]
        with reading(self.path), self.stream() if compression != ".zip" else self.open() as raw:
            if compression == ".zip":
                with zipfile.ZipFile(raw) as archive:
                    for name in zip_members(self.path, self.format, archive.namelist()):
                        with archive.open(name) as member:
                            yield f"{self.path}, in it {name}", cast(BinaryIO, member)
            else:
                with _decompress(raw, compression) as text:
                    yield self.path, text


def filesystem(url: str, storage_options: Mapping[str, Any]) -> tuple[Any, str]:
    """Returns the fsspec filesystem of a URL, and the path in it.

    Object stores are read by the package that writes there, unless there are options: these are for fsspec's own.
    """
    import fsspec

    if is_reached(url) and not storage_options:
        bucket, path = split_url(url)
        return filesystem_of(bucket), f"{bucket.partition('://')[2]}/{path}".rstrip("/")
    return cast(tuple[Any, str], fsspec.core.url_to_fs(url, **storage_options))


def _signature(marks: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in marks.items())


def _decompress(raw: BinaryIO, compression: str) -> BinaryIO:
    match compression:
        case ".gz":
            return cast(BinaryIO, gzip.open(raw))
        case ".bz2":
            return cast(BinaryIO, bz2.open(raw))
        case ".xz":
            return cast(BinaryIO, lzma.open(raw))
        case ".zst":
            return cast(BinaryIO, pa.CompressedInputStream(raw, "zstd"))
    return raw


@contextmanager
def backend_errors(url: str) -> Iterator[None]:
    """Turns whatever a remote storage backend raises into a SourceError; each backend has exceptions of its own."""
    try:
        yield
    except (TfrError, MemoryError, FileNotFoundError):
        raise
    except ImportError as error:
        scheme = url.partition("://")[0].rpartition("::")[2]
        extra = "http" if scheme == "https" else scheme
        raise SourceError(
            f"{url}: reading from there needs another package: {error}. `pip install 'fsspec[{extra}]'` brings it"
        ) from error
    except ValueError as error:
        if "rotocol not known" in str(error):
            scheme = url.split("://")[0]
            raise ConfigError(f"source.path: {url!r} begins with {scheme}://, which is not known.") from error
        raise SourceError(f"{url}: cannot be opened: {error}") from error
    except Exception as error:
        says = f"{type(error).__name__}: {error}"
        raise SourceError(describe(url, says) if is_reached(url) else f"{url}: cannot be opened: {says}") from error


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turns what can go wrong while a file is read into one SourceError that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceChanged(f"{where}: is no longer there. Bring it back, or materialize raw again.") from error
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{where}: holds bytes that are not {error.encoding} text ({error.reason}). "
            "If it is in another encoding, set it, such as `options: {encoding: latin-1}`."
        ) from error
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise SourceError(f"{where}: is damaged or cut short: {error}. Get it again.") from error
    except (pa.ArrowException, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise SourceError(f"{where}: cannot be read: {error!s:.300}") from error
