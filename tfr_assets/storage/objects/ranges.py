"""The bytes of an object, fetched in parts: several at once, ahead of the reader, and all of one version."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from tfr_assets.errors import SourceError
from tfr_assets.storage.objects.failures import store_errors
from tfr_assets.storage.objects.folder import ObjectFolder, Stat

PART = 4 << 20  # bytes of a request: enough that the way to the store does not count
AT_ONCE = 4  # requests; so many parts are in memory, too


@dataclass(frozen=True)
class ObjectVersion:
    """An object as it was when it was looked at. Get it from `version_of`.

    Attributes:
        url: The object.
        stat: What the store said of it.
    """

    url: str
    stat: Stat

    def fetch(self, start: int, stop: int) -> memoryview:
        """Returns a part of its bytes, in one request.

        Raises:
            SourceError: The store refused, or the object was replaced or removed since it was looked at.
        """
        from obstore.exceptions import PreconditionError

        folder, _, key = self.url.rpartition("/")
        place = ObjectFolder(folder)
        options = {"range": (start, stop), "if_match": self.stat.etag}
        try:
            with store_errors(self.url):
                got = memoryview(place.store.get(place.path(key), options=options).bytes())  # type: ignore[arg-type]
        except (PreconditionError, FileNotFoundError) as error:
            raise SourceError(f"{self.url}: was replaced or removed while it was read; open it again") from error
        if len(got) != stop - start:
            raise SourceError(f"{self.url}: the store gave {len(got)} bytes of the {stop - start} from {start} on")
        return got


def version_of(url: str) -> ObjectVersion:
    """Returns an object as it is now.

    Raises:
        SourceError: The store refused, or the object is not there.
    """
    folder, _, key = url.rpartition("/")
    stat = ObjectFolder(folder).stat(key)
    if stat is None:
        raise SourceError(f"{url}: is not there; have it put back, or locate the files again")
    return ObjectVersion(url, stat)


def chunks_of(url: str, start: int = 0, stop: int | None = None) -> Iterator[memoryview]:
    """Yields the bytes of an object in order; memory does not grow with it.

    Args:
        url: The object.
        start: First byte.
        stop: The one behind the last; None: the object's end.

    Raises:
        SourceError: The store refused, the object is not there, or it was replaced meanwhile.
    """
    version = version_of(url)
    end = version.stat.size if stop is None else min(stop, version.stat.size)
    parts = ((at, min(at + PART, end)) for at in range(start, end, PART))
    waiting: deque[Future[memoryview]] = deque()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix=f"read {url}") as pool:
        try:
            for part in parts:
                waiting.append(pool.submit(version.fetch, *part))
                if len(waiting) == AT_ONCE:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
