"""The bytes of an object, fetched in parts: several at once, ahead of the reader, and all of one version."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from tfr_assets.errors import SourceError
from tfr_assets.storage.objects.failures import store_errors
from tfr_assets.storage.objects.folder import ObjectFolder

PART = 4 << 20  # bytes of a request: enough that the way to the store does not count
AT_ONCE = 4  # requests; so many parts are in memory, too


def chunks_of(url: str, start: int = 0, stop: int | None = None) -> Iterator[memoryview]:
    """Yields the bytes of an object in order; memory does not grow with it.

    Args:
        url: The object.
        start: First byte.
        stop: The one behind the last; None: the object's end.

    Raises:
        SourceError: The store refused, the object is not there, or it was replaced meanwhile.
    """
    folder, _, key = url.rpartition("/")
    place = ObjectFolder(folder)
    stat = place.stat(key)
    if stat is None:
        raise SourceError(f"{url}: is not there; have it put back, or locate the files again")
    end = stat.size if stop is None else min(stop, stat.size)
    parts = ((at, min(at + PART, end)) for at in range(start, end, PART))
    waiting: deque[Future[memoryview]] = deque()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix=f"read {url}") as pool:
        try:
            for part in parts:
                waiting.append(pool.submit(_fetch, place, key, part, stat.etag))
                if len(waiting) == AT_ONCE:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _fetch(folder: ObjectFolder, key: str, part: tuple[int, int], etag: str) -> memoryview:
    from obstore.exceptions import PreconditionError

    url = folder.url_of(key)
    try:
        with store_errors(url):
            got = memoryview(folder.store.get(folder.path(key), options={"range": part, "if_match": etag}).bytes())
    except (PreconditionError, FileNotFoundError) as error:
        raise SourceError(f"{url}: was replaced or removed while it was read; open it again") from error
    if len(got) != part[1] - part[0]:
        raise SourceError(f"{url}: the store gave {len(got)} bytes of the {part[1] - part[0]} from {part[0]} on")
    return got
