"""The whole way on Azure's blob storage, by Microsoft's own emulator: writing, locks, reading, merging, runs."""

import base64
import hashlib
import hmac
import itertools
import os
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pyarrow as pa
import pytest

import tfr_assets
from tests.components.project import Project
from tests.storage.servers import free_port
from tests.storage.test_data_in_store import (
    KEYS,
    ROWS,
    SHARDS,
    compared,
    contents,
    ids,
    local_files,
    make_project,
    rows,
)
from tests.storage.test_write_to_store import local, without_call
from tests.waiting import wait_for
from tfr_assets.errors import TfrError
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.mirror import catch_up
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.lease import HeldError, Lease, hold_lease
from tfr_assets.urls import mirror_of

__all__ = ["make_project"]  # a fixture

pytest.importorskip("obstore", reason="needs obstore, of the extra 'dev'")
pytestmark = pytest.mark.skipif(not shutil.which("azurite-blob"), reason="needs azurite-blob: npm install -g azurite")

ACCOUNT = "devstoreaccount1"  # Azurite's own, with the key that its documentation names
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION = "2021-08-06"
_number = itertools.count()


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where Azurite is."""
    port, log = free_port(), tmp_path_factory.mktemp("azurite") / "log"
    command = ["azurite-blob", "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence", "--silent"]
    with log.open("wb") as output:
        more = ["--skipApiVersionCheck", "--disableTelemetry"]
        process = subprocess.Popen([*command, *more], stdout=output, stderr=output, cwd=log.parent)

    def is_up() -> bool:
        assert process.poll() is None, log.read_text()
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_for(is_up, 60, told=log.read_text)
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
    finally:
        process.kill()
        process.wait()


def make_container(endpoint: str, name: str) -> None:
    """Makes a container: what obstore does not do."""
    date = formatdate(usegmt=True)
    signed = "\n".join(
        ["PUT", *[""] * 11, f"x-ms-date:{date}", f"x-ms-version:{_VERSION}", f"/{ACCOUNT}/{ACCOUNT}/{name}"]
    )
    digest = hmac.new(base64.b64decode(KEY), f"{signed}\nrestype:container".encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date, "x-ms-version": _VERSION, "Content-Type": "", "Content-Length": "0",
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
    }  # fmt: skip
    url = f"{endpoint}/{name}?restype=container"
    with urllib.request.urlopen(urllib.request.Request(url, b"", headers, method="PUT")) as answer:
        assert answer.status == 201


@pytest.fixture
def container(endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The URL of a new container, in the environment of its user."""
    for name in [name for name in os.environ if name.startswith(("AZURE_", "AWS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", endpoint)
    monkeypatch.setenv("TFR_SPOOL", str(tmp_path / "spool"))
    name = f"container-{os.getpid()}-{next(_number)}"
    make_container(endpoint, name)
    return f"az://{name}"


@pytest.mark.parametrize("compression", ["none", "zlib"])
def test_what_is_written_is_verified_read_and_merged(container: str, tmp_path: Path, compression: str) -> None:
    url = f"{container}/out/rows"
    large = pa.table({"id": range(ROWS), "text": [f"{n} " * 20_000 for n in range(ROWS)]})  # more than one part
    for table in (rows(), large):  # the second replaces the first
        tfr_assets.write(table, url, shards=SHARDS, compression=compression)
        tfr_assets.write(table, tmp_path / "rows", shards=SHARDS, compression=compression)
        assert without_call(contents(url)) == without_call(local(tmp_path / "rows"))
    assert all(report.ok for report in tfr_assets.verify(url))
    assert ids(url) == list(range(ROWS))
    read = [n for batch in tfr_assets.read(url, batch_size=64) for n in batch["id"].numpy()]
    assert sorted(read) == list(range(ROWS))
    assert tfr_assets.open(url).take([ROWS - 1, 0])["id"].tolist() == [ROWS - 1, 0]
    files = [f"{url}/rows-train.tfrecord-{n:05d}-of-{SHARDS:05d}" for n in range(SHARDS)]
    tfr_assets.merge(files, f"{container}/all.tfrecord")  # the store cannot join: they are fetched, merged and sent
    assert ids(f"{container}/all.tfrecord") == list(range(ROWS))
    damaged = ObjectFolder(url).get("rows-train.tfrecord-00001-of-00003") or b""
    ObjectFolder(url).put("rows-train.tfrecord-00001-of-00003", damaged[:-9] + b"?" + damaged[-8:])
    assert [report.ok for report in tfr_assets.verify(url)].count(False) == 1


def test_one_writer_at_a_time(container: str) -> None:
    folder = ObjectFolder(f"{container}/x")
    with hold_lease(folder, seconds=3) as lease:
        with pytest.raises(HeldError, match="is writing there and holds"):
            Lease(folder, ".lock", 3).take()
        lease.check()
    assert folder.walk() == {}
    folder.put(".lock", b"of one that is gone")
    with hold_lease(folder, seconds=1):
        pass
    assert folder.walk() == {}


def test_a_refresh_makes_what_it_makes_on_a_disk(container: str, make_project: Callable[..., Project]) -> None:
    local, stored = make_project("here"), make_project("there", f"{container}/lake")
    for project in (local, stored):
        project.table("sales", rows())
        project.dataset("sales", shards=SHARDS)
        ran = project.refresh("sales", SHARDS)
        assert ran.ok, ran.problems()
    url = f"{container}/lake/sales"
    assert compared(contents(url)) == compared(local_files(local, "sales"))
    ObjectFolder(url).delete([f"shards/sales-train.tfrecord-{KEYS[1][6:]}"])
    again = stored.refresh("sales", SHARDS)
    assert again.ok, again.problems()
    assert [key for key, shown in again.materialized("shards").items() if shown["written"]] == [KEYS[1]]
    assert ids(url) == list(range(ROWS))


def test_what_is_here_already_is_not_fetched_again(container: str) -> None:
    folder = mirror_of(f"{container}/sales")
    ObjectFolder(f"{container}/sales").put("manifest/theirs.json", b"{}")
    catch_up(folder)
    write_atomically(folder / "manifest" / "ours.json", b"{}")
    paths = [folder / "manifest" / name for name in ("theirs.json", "ours.json")]
    before = [path.stat().st_ctime_ns for path in paths]
    catch_up(folder)
    assert [path.stat().st_ctime_ns for path in paths] == before


def test_what_the_store_refuses_is_said_in_a_sentence(container: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TfrError, match=f"there is no bucket {container}x; make it, or correct the URL"):
        tfr_assets.write(rows(), f"{container}x/rows", shards=2)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"wrong").decode())
    with pytest.raises(TfrError, match=r"no permission|does not know this credential") as caught:
        tfr_assets.write(rows(), f"{container}/rows", shards=2)
    assert "AWS_" not in str(caught.value) and "\n" not in str(caught.value)
