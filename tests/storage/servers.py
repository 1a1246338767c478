"""Real servers that speak S3, in processes of their own, and one between that fails on demand."""

import http.client
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.waiting import wait_for

SECRET = "a-secret-that-nobody-may-see"
# A server ends when its input does: also when the tests were killed.
_SERVE = """
import os, runpy, sys, threading

def end():
    sys.stdin.buffer.read()
    os._exit(0)

threading.Thread(target=end, daemon=True).start()
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
SERVERS = {"moto": "moto.server", "ministack": "ministack"}


def free_port() -> int:
    """Returns a port that nobody listens to."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(name: str, log: Path) -> Iterator[str]:
    """Runs a server on a free port, and yields its endpoint."""
    port = free_port()
    arguments = ["-H", "127.0.0.1", "-p", str(port)] if name == "moto" else []
    settings = {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "SERVICES": "s3",
        "IOT_MTLS_PORT": str(free_port()),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, SERVERS[name], *arguments],
            env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **settings},
            stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=log.parent,
        )  # fmt: skip
    try:

        def is_up() -> bool:
            assert process.poll() is None, log.read_text()
            with socket.socket() as connection:
                return connection.connect_ex(("127.0.0.1", port)) == 0

        wait_for(is_up, told=log.read_text)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


Answer = tuple[int, str] | None
"""A status and an S3 error code, instead of what the server would answer; None: ask the server."""


class Between:
    """A server that hands requests on to another, unless it is to fail.

    Attributes:
        endpoint: Where it is.
        requests: Method and path of all so far.
        lose: Returns which share of the answer arrives before the connection is lost; the server did what was asked.
        sent: Called with path and size of the body of each request.
        answer: Called with method, path and query of each request, by its own thread; may wait, raise or answer.
    """

    def __init__(self, behind: str) -> None:
        between = self
        self.requests: list[tuple[str, str]] = []
        self.answer: Callable[[str, str, str], Answer] = lambda method, path, query: None
        self.lose: Callable[[str, str, str], float | None] = lambda method, path, query: None
        self.sent: Callable[[str, int], None] = lambda path, size: None

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self._body()
                between.sent(self.path, len(body))
                parts = urlsplit(self.path)
                between.requests.append((self.command, self.path))
                try:
                    answer = between.answer(self.command, parts.path, parts.query)
                except ConnectionError:
                    self.close_connection = True
                    self.connection.close()
                    return
                if answer:
                    status, code = answer
                    text = (
                        f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>so it is</Message></Error>".encode()
                    )
                    self._reply(status, {"Content-Type": "application/xml"}, text if self.command != "HEAD" else b"")
                    return
                connection = http.client.HTTPConnection(urlsplit(behind).netloc, timeout=60)
                headers = {
                    k: v for k, v in self.headers.items() if k.lower() not in ("transfer-encoding", "connection")
                }
                connection.request(self.command, self.path, body, headers)
                got = connection.getresponse()
                skipped = ("transfer-encoding", "connection", "content-length", "date", "server")
                kept = {k: v for k, v in got.getheaders() if k.lower() not in skipped}
                content = got.read()
                share = between.lose(self.command, parts.path, parts.query)
                if share is not None:
                    kept["Content-Length"] = str(len(content))
                    self._reply(got.status, kept, content[: int(share * len(content))]) if share else None
                    self.close_connection = True
                    self.connection.close()
                    return
                if self.command == "HEAD":
                    kept["Content-Length"] = got.getheader("Content-Length", "0")
                self._reply(got.status, kept, content)
                connection.close()

            def _body(self) -> bytes:
                if "chunked" in self.headers.get("Transfer-Encoding", ""):
                    parts = []
                    while size := int(self.rfile.readline().split(b";")[0], 16):
                        parts.append(self.rfile.read(size))
                        self.rfile.readline()
                    self.rfile.readline()
                    return b"".join(parts)
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def _reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers and status != 204:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args: object) -> None:  # a client that was killed
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
