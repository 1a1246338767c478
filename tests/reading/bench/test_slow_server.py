"""A web server that waits, against Python's own client."""

import http.client
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tfr_assets.bench.readers.slow_server import Storage, slow_server
from tfr_assets.errors import ConfigError

CONTENT = os.urandom(100_000)
_DIES = """
import os, sys
from pathlib import Path
from tfr_assets.bench.readers.slow_server import Storage, slow_server
with slow_server(Path(sys.argv[1]), Storage(0, 1)) as url:
    print(url, flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served")
    (made / "below").mkdir()
    (made / "below" / "file-00000-of-00001").write_bytes(CONTENT)
    (made / "empty").touch()
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with slow_server(folder, Storage(0, 1000)) as made:
        yield made


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers, method=method), timeout=20) as answer:
        return answer.status, answer.read(), dict(answer.headers)


def test_a_file_is_sent_whole(url: str) -> None:
    status, content, headers = get(f"{url}/below/file-00000-of-00001")
    assert (status, content, headers["Accept-Ranges"]) == (200, CONTENT, "bytes")
    assert get(f"{url}/empty")[:2] == (200, b"")


def test_its_size_is_told_alone(url: str) -> None:
    status, content, headers = get(f"{url}/below/file-00000-of-00001", "HEAD")
    assert (status, content, headers["Content-Length"]) == (200, b"", str(len(CONTENT)))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(CONTENT) - 1), st.integers(0, len(CONTENT) * 2))
def test_parts_are_sent(url: str, first: int, more: int) -> None:
    status, content, headers = get(f"{url}/below/file-00000-of-00001", Range=f"bytes={first}-{first + more}")
    assert (status, content) == (206, CONTENT[first : first + more + 1])
    assert headers["Content-Range"] == f"bytes {first}-{first + len(content) - 1}/{len(CONTENT)}"


def test_ends_are_sent(url: str) -> None:
    assert get(f"{url}/below/file-00000-of-00001", Range="bytes=99990-")[1] == CONTENT[99_990:]
    assert get(f"{url}/below/file-00000-of-00001", Range="bytes=-10")[1] == CONTENT[-10:]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [("none", {}, 404), ("below/file-00000-of-00001", {"Range": "bytes=100000-"}, 416)],
)
def test_what_is_not_there_is_refused(url: str, path: str, headers: dict[str, str], status: int) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(f"{url}/{path}", **headers)
    assert caught.value.code == status


def test_the_answer_ends_with_a_file_that_is_cut_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    with slow_server(tmp_path, Storage(0, 0.1)) as url:
        answer = urllib.request.urlopen(f"{url}/file", timeout=10)
        os.truncate(tmp_path / "file", 10)
        with answer, pytest.raises(http.client.IncompleteRead):
            answer.read()


def test_a_folder_is_listed(url: str) -> None:
    assert b'href="file-00000-of-00001"' in get(f"{url}/below/")[1]


def test_it_really_waits_for_each_answer_and_for_all_at_once(folder: Path) -> None:
    with slow_server(folder, Storage(first_byte_ms=100, mb_per_second=1)) as url, ThreadPoolExecutor(8) as pool:
        started = time.perf_counter()
        answers = list(pool.map(get, [f"{url}/below/file-00000-of-00001"] * 8))
        took = time.perf_counter() - started
    assert [content for _, content, _ in answers] == [CONTENT] * 8
    assert took >= 0.1 + len(CONTENT) / 1e6
    assert took < 8 * (0.1 + len(CONTENT) / 1e6)  # one after another it would be that


def test_it_ends_with_whoever_started_it(folder: Path) -> None:
    command = [sys.executable, "-c", _DIES, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    url = done.stdout.strip()
    for _ in range(500):
        try:
            get(f"{url}/empty")
        except urllib.error.URLError:
            return
        time.sleep(0.02)
    pytest.fail("the server is still there")


@pytest.mark.parametrize("wrong", [{"first_byte_ms": -1}, {"mb_per_second": 0}, {"first_byte_ms": float("nan")}])
def test_impossible_storage_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        Storage(**wrong)
