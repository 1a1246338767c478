"""Remote files as they are at one moment: which version, and parts of that version where the storage gives any."""

from collections.abc import Callable
from dataclasses import dataclass

from tfr_assets.errors import SourceError
from tfr_assets.storage.file_names import is_http
from tfr_assets.storage.objects.ranges import version_of
from tfr_assets.storage.objects.store import is_reached
from tfr_assets.storage.raw_files import RawFile, reading
from tfr_assets.storage.web import HEAD, look_at


@dataclass(frozen=True)
class RemoteVersion:
    """A remote file as it was when it was looked at. Get it from `version_at`.

    Attributes:
        url: The file.
        size: Its bytes; None where the storage does not tell.
        version: What changes with its content; None where nothing that the storage tells does so for certain.
        fetch: Returns the bytes from one place to another, of this version or as a SourceError; None: parts cannot be
            had, or not for certain of this version.
        head: Returns its first bytes.
    """

    url: str
    size: int | None
    version: str | None
    fetch: Callable[[int, int], memoryview] | None
    head: Callable[[], bytes]


def version_at(url: str) -> RemoteVersion:
    """Returns a remote file as it is now.

    Raises:
        SourceError: It is not there, or the storage refused.
    """
    if is_reached(url):
        found = version_of(url)
        size, version = found.stat.size, f"size={found.stat.size} ETag={found.stat.etag}"
        return RemoteVersion(url, size, version, found.fetch, lambda: bytes(found.fetch(0, min(HEAD, size))))
    try:
        if is_http(url):
            web = look_at(url)
            fetch = web.fetch if web.has_ranges and web.version else None
            return RemoteVersion(url, web.size, web.version, fetch, lambda: web.head)
        file = RawFile(url, "tfrecord")
        bytes_, signature = file.info()
    except FileNotFoundError as error:
        raise SourceError(f"{url}: is not there; have it put back, or correct the URL") from error
    is_size_only = signature in ("", f"size={bytes_}")
    return RemoteVersion(url, bytes_, None if is_size_only else signature, None, lambda: _head(file))


def _head(file: RawFile) -> bytes:
    with reading(file.path), file.stream() as stream:
        return stream.read(HEAD)
