"""Files of web servers: what a server tells of one, and parts of it, all of one version."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from tfr_assets.errors import SourceError
from tfr_assets.storage.raw_files import backend_errors, filesystem

T = TypeVar("T")
HEAD = 12  # bytes of a file that are asked for with what is told of it
_PAUSE = timedelta(seconds=2)  # times are told in seconds: a file that is younger may change again within its own
_OK, _PART, _BEYOND = 200, 206, 416
_MOMENTARY = {408, 425, 429, 500, 502, 503, 504, *range(520, 525)}  # of a server that is busy, or starts again
_REFUSALS = {401, 403, 404, 405, 410, 501}  # what servers answer to who asks for what is not there
_RETRIES, _WAIT = 5, 0.25  # how often it is asked again, and seconds before; each wait is twice as long as the last
_CONNECTIONS = 2  # how often one that does not answer at all is asked again: it seldom does so later


@dataclass(frozen=True)
class WebFile:
    """A file as a server tells of it.

    Attributes:
        url: The file.
        size: Its bytes; None: the server does not say.
        version: What changes with its content; None: nothing that the server says does so for certain.
        has_ranges: Whether parts of it can be asked for.
        is_page: Whether it is a page to look at rather than data, such as the list of a folder.
        head: Its first bytes.
    """

    url: str
    size: int | None
    version: str | None
    has_ranges: bool
    is_page: bool
    head: bytes

    def fetch(self, start: int, stop: int) -> memoryview:
        """Returns a part of its bytes, in one request, which is made again after a failure of a moment.

        Raises:
            SourceError: The server refused, or the file was replaced or removed since it was looked at.
        """
        replaced = SourceError(f"{self.url}: was replaced or removed while it was read; open it again")
        try:
            status, headers, content = _ask(self.url, start, stop)
        except FileNotFoundError as error:
            raise replaced from error
        if status == _BEYOND or (status == _PART and _version(headers) != self.version):
            raise replaced
        if status != _PART or len(content) != stop - start:
            raise SourceError(
                f"{self.url}: the server gave {len(content)} bytes (status {status}) where {stop - start} from {start} "
                "on were asked for; copy the file, and read the copy"
            )
        return memoryview(content)


def look_at(url: str) -> WebFile:
    """Returns what a server tells of a file, by one request for its first bytes.

    Raises:
        FileNotFoundError: It is not there.
        SourceError: The server refused, or cannot be reached.
    """
    status, headers, content = _ask(url, 0, HEAD)
    is_page = headers.get("Content-Type", "").startswith("text/html")
    return WebFile(url, _size(headers), _version(headers), status != _OK, is_page, content)


def asking_again(url: str, ask: Callable[[], T]) -> T:
    """Returns what a web server answers, asked again where it, or the way to it, fails for a moment.

    Args:
        url: What is asked for.
        ask: Asks.

    Raises:
        FileNotFoundError: It is not there.
        SourceError: The server refused, or failed for longer.
    """
    with backend_errors(url):
        from aiohttp import (
            ClientConnectionError,
            ClientConnectorDNSError,
            ClientConnectorError,
            ClientPayloadError,
            ClientResponseError,
            ClientSSLError,
        )

        retry = 0
        while True:
            most = _RETRIES
            try:
                return ask()
            except ClientResponseError as error:
                if error.status not in _MOMENTARY:
                    raise
                failure: Exception = error
                answer = f"{error.status} {error.message}"
                says = f"the server failed after {retry} retries ({answer}); run again when it is well"
            except (ClientSSLError, ClientConnectorDNSError):
                raise
            except ClientConnectorError as error:
                failure, most = error, _CONNECTIONS
                says = f"the server cannot be reached ({error}); check its address and the network"
            except (ClientConnectionError, ClientPayloadError) as error:
                failure = error
                says = f"the connection was lost after {retry} retries ({error}); check the network, then run again"
            if retry >= most:
                raise SourceError(f"{url}: {says}") from failure
            time.sleep(_WAIT * 2**retry)
            retry += 1


def is_refusal(error: SourceError) -> bool:
    """Whether a web server answered that it does not tell: many forbid what is not there, and to list folders.

    Anything else, such as a failure, or an answer that cannot be understood, says nothing of what is there.

    Args:
        error: What was made of its answer.
    """
    return getattr(error.__cause__, "status", None) in _REFUSALS


def _ask(url: str, start: int, stop: int) -> tuple[int, Mapping[str, str], bytes]:
    return asking_again(url, lambda: _answer(url, start, stop))


def _answer(url: str, start: int, stop: int) -> tuple[int, Mapping[str, str], bytes]:
    """Asks for a part of a file; of a file that a server sends whole, only the first bytes of the part are taken."""
    from fsspec.asyn import sync

    fs, path = filesystem(url, {})
    wanted = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
    settings = {**fs.kwargs, "headers": {**fs.kwargs.get("headers", {}), **wanted}}

    async def ask() -> tuple[int, Mapping[str, str], bytes]:
        session: Any = await fs.set_session()
        async with session.get(fs.encode_url(path), **settings) as answer:
            if answer.status == _BEYOND:
                return _BEYOND, answer.headers, b""
            fs._raise_not_found_for_status(answer, url)
            content = bytearray()
            while len(content) < (stop - start if answer.status == _PART else min(HEAD, stop - start)):
                if not (some := await answer.content.read(stop - start - len(content))):
                    break
                content += some
            return answer.status, answer.headers, bytes(content)

    found: tuple[int, Mapping[str, str], bytes] = sync(fs.loop, ask)
    return found


def _size(headers: Mapping[str, str]) -> int | None:
    if "Content-Range" in headers:
        total = headers["Content-Range"].rpartition("/")[2]
    else:
        total = "" if headers.get("Content-Encoding", "identity") != "identity" else headers.get("Content-Length", "")
    return int(total) if total.isdigit() else None


def _version(headers: Mapping[str, str]) -> str | None:
    """Returns what tells a version: a strong entity tag, or the time of a change that lies back far enough."""
    etag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
    if not etag.startswith('"') and not _is_settled(modified, headers.get("Date", "")):
        return None
    return f"size={_size(headers)} ETag={etag} Last-Modified={modified}"


def _is_settled(modified: str, now: str) -> bool:
    changed, told = _time(modified), _time(now)
    return changed is not None and told is not None and told - changed >= _PAUSE


def _time(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except ValueError:  # there is none, or it is no time
        return None
