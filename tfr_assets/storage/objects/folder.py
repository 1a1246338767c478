"""The objects below a URL. Each is whole or absent: one that is being sent is not visible before its end."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from tfr_assets.errors import SourceError, WriteError
from tfr_assets.storage.objects.failures import is_without_bucket, store_errors
from tfr_assets.storage.objects.store import store_of
from tfr_assets.urls import split_url

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import ObjectStore

_PART, _MOST_PARTS = 8 << 20, 9_000  # bytes of a part, and how many there may be with room to spare
_MOST_LOST = 5  # answers to one request
_T = TypeVar("_T")
_AT_ONCE = 4  # parts that are sent at once: as many are in memory


class ChangedError(Exception):
    """An object is not what a condition said: somebody else wrote or removed it."""


@dataclass(frozen=True)
class Stat:
    """What a store says of an object.

    Attributes:
        size: Bytes.
        etag: Changes with the object.
    """

    size: int
    etag: str


@dataclass(frozen=True)
class Version:
    """Which version of an object it is, as a request says that must apply to it alone.

    Attributes:
        etag: What S3 and Azure compare.
        number: What Google's store compares; None elsewhere, and where a bucket keeps no versions.
    """

    etag: str
    number: str | None

    @property
    def condition(self) -> "UpdateVersion":
        """What obstore takes for it."""
        return {"e_tag": self.etag, "version": self.number} if self.number else {"e_tag": self.etag}


def _whole(ask: Callable[[], _T]) -> _T:
    """Asks again where a connection was lost in the middle of an answer: obstore tries again only what has none yet."""
    from obstore.exceptions import BaseError

    for _ in range(_MOST_LOST):
        try:
            return ask()
        except BaseError as error:
            if "response body" not in str(error):
                raise
    return ask()


def _etag(said: str | None) -> str:
    """Returns an etag as all requests have it: Azure's listings leave its quotes out, its other answers do not."""
    etag = str(said)
    return etag if etag.endswith('"') else f'"{etag}"'


def _version(said: Mapping[str, Any]) -> Version:
    return Version(_etag(said["e_tag"]), said.get("version"))


@dataclass(frozen=True)
class ObjectFolder:
    """The objects below a URL, by keys relative to it.

    Attributes:
        url: Such as `s3://bucket/prefix`.
        patience: As for `store_of`.
    """

    url: str
    patience: float | None = None

    @property
    def bucket(self) -> str:
        """URL of the bucket."""
        return split_url(self.url)[0]

    @property
    def name(self) -> str:
        """The last part of the URL's path; nothing of a bucket."""
        return split_url(self.url)[1].rpartition("/")[2]

    @property
    def store(self) -> "ObjectStore":
        """The store; not to be kept, since a forked process needs another."""
        return store_of(self.bucket, self.patience)

    def path(self, key: str) -> str:
        """Returns an object's whole key in the bucket."""
        prefix = split_url(self.url)[1]
        return f"{prefix}/{key}".strip("/") if prefix else key

    def url_of(self, key: str) -> str:
        """Returns an object's URL."""
        return f"{self.bucket}/{self.path(key)}"

    def stat(self, key: str) -> Stat | None:
        """Returns what there is under a key, or None.

        Raises:
            SourceError: The store refused.
        """
        with store_errors(self.url_of(key)):
            try:
                found = self.store.head(self.path(key))
            except FileNotFoundError as error:
                if is_without_bucket(error):
                    raise
                return None
        return Stat(found["size"], _etag(found["e_tag"]))

    def get(self, key: str) -> bytes | None:
        """Returns an object's content, or None where there is none.

        Raises:
            SourceError: The store refused.
        """
        found = self.get_versioned(key)
        return found[0] if found else None

    def get_versioned(self, key: str) -> tuple[bytes, Version] | None:
        """Returns an object's content and version, or None where there is none. Raises as `get`."""
        with store_errors(self.url_of(key)):
            try:
                return _whole(lambda: self._content(key))
            except FileNotFoundError as error:
                if is_without_bucket(error):
                    raise
                return None

    def _content(self, key: str) -> tuple[bytes, Version]:
        found = self.store.get(self.path(key))
        return found.bytes().to_bytes(), _version(found.meta)

    def list(self, below: str = "") -> dict[str, Stat]:
        """Returns the objects right below a key, by name.

        Raises:
            SourceError: The store refused.
        """
        with store_errors(self.url_of(below)):
            listed = _whole(lambda: self.store.list_with_delimiter(self.path(below) or None)["objects"])
        found = {item["path"]: Stat(item["size"], _etag(item["e_tag"])) for item in listed}
        found.pop(self.path(below), None)  # an empty object that stands for this folder
        return {path.rpartition("/")[2]: stat for path, stat in found.items()}

    def folders(self) -> set[str]:
        """Returns the names of the folders right below the URL. Raises as `list`."""
        with store_errors(self.url):
            listed = _whole(lambda: self.store.list_with_delimiter(split_url(self.url)[1] or None)["common_prefixes"])
        return {path.rstrip("/").rpartition("/")[2] for path in listed}

    def walk(self) -> dict[str, Stat]:
        """Returns all objects at any depth, by key, without empty ones that stand for folders. Raises as `list`."""
        prefix = split_url(self.url)[1]
        with store_errors(self.url):
            listed = _whole(lambda: [item for some in self.store.list(prefix or None) for item in some])
        start = len(prefix) + 1 if prefix else 0
        found = {item["path"][start:]: Stat(item["size"], _etag(item["e_tag"])) for item in listed}
        folders = {str(above) for key in found for above in PurePosixPath(key).parents} | {""}
        return {key: stat for key, stat in found.items() if stat.size or key not in folders}

    def put(self, key: str, content: bytes) -> Version:
        """Writes an object, whatever was there, and returns its version.

        Raises:
            WriteError: The store refused.
        """
        with self._writing(key):
            return _version(self.store.put(self.path(key), content, use_multipart=False))

    def create(self, key: str, content: bytes) -> Version:
        """Writes an object where there is none, and returns its version.

        Raises:
            ChangedError: There is one already, of other content.
            WriteError: The store refused.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._writing(key):
            try:
                return _version(self.store.put(self.path(key), content, mode="create"))
            except (AlreadyExistsError, PreconditionError) as error:
                found = self.get_versioned(key)
                if found and found[0] == content:  # an answer was lost, and the request was made again
                    return found[1]
                raise ChangedError(self.url_of(key)) from error

    def replace(self, key: str, content: bytes, version: Version) -> Version:
        """Writes an object in place of a version of it, and returns the new one.

        Raises:
            ChangedError: It is another one by now.
            WriteError: The store refused.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._writing(key):
            try:
                return _version(self.store.put(self.path(key), content, mode=version.condition))
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                found = self.get_versioned(key)
                if found and found[0] == content:
                    return found[1]
                raise ChangedError(self.url_of(key)) from error

    @contextmanager
    def uploading(self, key: str, file: Path) -> Iterator[None]:
        """Sends a local file, and then runs the block; when that ends without an error, the object appears.

        Raises:
            WriteError: The store refused, or the file cannot be read. Nothing appeared, and no part of it stays.
        """
        import obstore
        from obstore.exceptions import BaseError

        size = file.stat().st_size
        part = max(_PART, -(-size // _MOST_PARTS))
        with self._writing(key):
            writer = obstore.open_writer(self.store, self.path(key), buffer_size=part, max_concurrency=_AT_ONCE)
        with self._aborting(key, writer):
            with self._writing(key), file.open("rb", buffering=0) as content:
                while chunk := content.read(part):
                    writer.write(chunk)
            yield
            with self._writing(key):
                try:
                    writer.close()
                except (FileNotFoundError, BaseError) as error:
                    # the answer to its end was lost, and the upload is not known any more when it is ended again
                    if "NoSuchUpload" not in str(error) or not self._holds(key, file):
                        raise

    def _holds(self, key: str, file: Path) -> bool:
        """Whether an object is there with the content of a local file."""
        stat = self.stat(key)
        if stat is None or stat.size != file.stat().st_size:
            return False
        with file.open("rb") as content:
            return all(
                content.read(len(chunk)) == bytes(chunk) for chunk in self.store.get(self.path(key)).stream(_PART)
            )

    @contextmanager
    def _aborting(self, key: str, writer: object) -> Iterator[None]:
        """Ends an upload without a trace if the block fails."""
        try:
            yield
        except BaseException as error:
            try:
                writer.__exit__(type(error), error, None)  # type: ignore[attr-defined]
            except Exception as other:  # the store is gone: the error that led here counts
                error.add_note(f"the upload of {self.url_of(key)} could not be aborted either: {str(other)[:100]}")
            raise

    def delete(self, keys: Collection[str]) -> None:
        """Removes objects, if they are there.

        Raises:
            WriteError: The store refused.
        """
        for key in keys:
            with self._writing(key):
                try:
                    self.store.delete(self.path(key))
                except FileNotFoundError as error:
                    if is_without_bucket(error):
                        raise

    @contextmanager
    def _writing(self, key: str) -> Iterator[None]:
        url = self.url_of(key)
        try:
            with store_errors(url, WriteError):
                yield
        except SourceError as error:  # of what was read in order to write
            raise WriteError(str(error)) from error
        except FileNotFoundError as error:
            says = str(error).splitlines()[0]
            raise WriteError(f"{url}: the store does not find what it is to write: {says}") from error
        except OSError as error:
            raise WriteError(f"{url}: cannot be written: {error.strerror or error}") from error
