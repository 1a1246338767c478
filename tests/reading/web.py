"""A web server as there are many: with ranges or without, with entity tags, times, or neither; and one that fails."""

import hashlib
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Web:
    """What a server does, which tests change.

    Attributes:
        url: Of the folder that it serves.
        ranges: Whether it gives parts of files.
        etags: Whether it tells an entity tag.
        times: Whether it tells when a file was changed.
        lists: Whether it lists folders.
        sizes: Whether it tells the size of what it sends.
        forbids: Whether it forbids what is not there.
        breaks: What the path of a request ends with that fails, as many times as are left.
        breaks_by: How: the status; `garbage` is no HTTP.
        fails: How the next requests for parts of files fail: by a status, or the connection is lost before the answer,
            or within it.
        requests: The path and the range of each file that was asked for.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.ranges = self.etags = self.lists = self.sizes = True
        self.times = self.forbids = False
        self.fails: list[int | Literal["lost", "cut"]] = []
        self.breaks: dict[str, int] = {}
        self.breaks_by: int | Literal["garbage"] = 503
        self.requests: list[tuple[str, str]] = []


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, web: Web, **settings: Any) -> None:
        self._web = web
        super().__init__(*arguments, **settings)

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path, web = Path(self.translate_path(self.path)), self._web
        for end, left in web.breaks.items():
            if self.path.rstrip("/").endswith(end) and left:
                web.breaks[end] -= 1
                if isinstance(web.breaks_by, int):
                    self.send_error(web.breaks_by)
                else:
                    self.wfile.write(b"what is this?\r\n\r\n")
                    self.close_connection = True
                return
        if path.is_dir() and web.lists:
            super().do_GET()
            return
        if not path.is_file():
            self.send_error(403 if web.forbids else 404)
            return
        content = path.read_bytes()
        if self.command == "GET":
            web.requests.append((self.path, self.headers.get("Range", "")))
        match = _RANGE.fullmatch(self.headers.get("Range", "")) if web.ranges else None
        failure = web.fails.pop(0) if match and web.fails else None
        if isinstance(failure, int):
            self.send_error(failure)
            return
        if failure == "lost":
            self._lose()
            return
        first, stop = (int(match[1]), min(int(match[2]) + 1, len(content))) if match else (0, len(content))
        self.send_response(206 if match else 200)
        if match:
            self.send_header("Content-Range", f"bytes {first}-{stop - 1}/{len(content)}")
        if web.etags:
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()[:16]}"')
        if web.times:
            self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        if web.sizes:
            self.send_header("Content-Length", str(stop - first))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if failure == "cut":
            self._send(content[first : (first + stop) // 2])
            self._lose()
        elif self.command == "GET":
            self._send(content[first:stop])

    def _lose(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it is reset
        self.connection.close()

    def _send(self, content: bytes) -> None:
        try:
            self.wfile.write(content)
        except ConnectionError:  # the client has what it wants
            self.close_connection = True


@contextmanager
def serving(folder: Path) -> Iterator[Web]:
    """Serves a folder."""
    web = Web("")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder), web=web)) as server:
        web.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield web
        finally:
            server.shutdown()
            thread.join()
