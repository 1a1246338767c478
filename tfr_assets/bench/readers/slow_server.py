"""Storage that is far away: a web server that waits before the first byte of an answer, and has a limited bandwidth.

It runs in a process of its own, really waits, answers any number of requests at once, and knows ranges.
"""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tfr_assets.errors import ConfigError
from tfr_assets.processes import end_process, start_python
from tfr_assets.reading.locate.record_files import RecordFiles

_CHUNK = 32 * 1024
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class Storage:
    """How slow the storage is.

    Attributes:
        first_byte_ms: From a request to the first byte of the answer, in milliseconds.
        mb_per_second: Millions of bytes a second that one answer can have; several answers at once have it each.

    Raises:
        ConfigError: A value is invalid.
    """

    first_byte_ms: float = 50.0
    mb_per_second: float = 20.0

    def __post_init__(self) -> None:
        if not 0 <= self.first_byte_ms <= 60_000:
            raise ConfigError(f"latency: expected milliseconds from 0 to 60,000; found {self.first_byte_ms!r}")
        if not self.mb_per_second > 0:
            raise ConfigError(f"bandwidth: expected MB a second, more than 0; found {self.mb_per_second!r}")

    def __str__(self) -> str:
        return f"{self.first_byte_ms:g} ms to the first byte, {self.mb_per_second:g} MB/s a connection"


@contextmanager
def slow_server(folder: Path, storage: Storage) -> Iterator[str]:
    """Serves a folder and all below it; yields its URL, and ends the server afterwards, or when this process dies."""
    values = [str(folder), str(storage.first_byte_ms / 1e3), str(storage.mb_per_second * 1e6)]
    statement = f"from {__name__} import main; main({values!r})"
    process = start_python(statement, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.stdout.close()
        end_process(process)


def with_urls(files: RecordFiles, folder: Path, url: str) -> RecordFiles:
    """Returns files below a folder with the URLs at which a server gives them."""
    return replace(files, paths=tuple(f"{url}/{Path(path).relative_to(folder)}" for path in files.paths))


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, wait: float, rate: float, **settings: Any) -> None:
        self._wait, self._rate = wait, rate
        super().__init__(*arguments, **settings)

    def do_GET(self) -> None:
        """Answers with a file, part of one, or a folder's list."""
        time.sleep(self._wait)
        path = Path(self.translate_path(self.path))
        if path.is_file():
            self._answer(path, with_content=True)
        else:
            super().do_GET()

    def do_HEAD(self) -> None:
        """Answers with the size of a file."""
        time.sleep(self._wait)
        path = Path(self.translate_path(self.path))
        if path.is_file():
            self._answer(path, with_content=False)
        else:
            super().do_HEAD()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def _answer(self, path: Path, with_content: bool) -> None:
        size = path.stat().st_size
        first, last = self._range(size)
        if first > last and size:
            self.send_response(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        partial_content = "Range" in self.headers and size > 0
        self.send_response(HTTPStatus.PARTIAL_CONTENT if partial_content else HTTPStatus.OK)
        if partial_content:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        if with_content:
            self._send(path, first, last + 1)

    def _range(self, size: int) -> tuple[int, int]:
        """Returns the first and the last byte that are asked for."""
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        if not asked or asked.groups() == ("", ""):
            return 0, size - 1
        first, last = asked.groups()
        if not first:
            return max(0, size - int(last)), size - 1
        return int(first), min(int(last), size - 1) if last else size - 1

    def _send(self, path: Path, start: int, stop: int) -> None:
        due = time.perf_counter()
        with path.open("rb") as file:
            file.seek(start)
            sent = 0
            while sent < stop - start:
                chunk = file.read(min(_CHUNK, stop - start - sent))
                if not chunk:  # the file was cut: less than was promised
                    self.close_connection = True
                    return
                sent += len(chunk)
                now = time.perf_counter()
                due = max(due, now) + len(chunk) / self._rate  # what a reader did not take in time is not caught up
                time.sleep(due - now)
                try:
                    self.wfile.write(chunk)
                except ConnectionError:  # the client has closed the connection
                    self.close_connection = True
                    return


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Says nothing of connections that a reader drops, as it may."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*_)


def main(arguments: Sequence[str]) -> None:
    """Serves until standard input is closed; prints the port."""
    folder, wait, rate = arguments
    handler = partial(_Handler, directory=folder, wait=float(wait), rate=float(rate))
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
