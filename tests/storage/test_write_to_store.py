"""`write` to an object store: the files of a local folder, whole or not visible, by one writer at a time."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfr_assets
from tests.storage.servers import SECRET, Between
from tests.storage.test_objects import uploads
from tests.waiting import wait_for
from tfr_assets.errors import ConfigError, SchemaError, WriteError
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.objects.folder import ObjectFolder

TABLE = pa.table({"id": pa.array(range(3000), pa.int64()), "text": [f"text {i} " * 50 for i in range(3000)]})


def contents(url: str) -> dict[str, bytes]:
    folder = ObjectFolder(url)
    return {key: folder.get(key) or b"" for key in folder.walk()}


def local(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def without_call(files: dict[str, bytes]) -> dict[str, Any]:
    """Files; of manifests, all but which call of `write` they are of."""
    compared: dict[str, Any] = {}
    for name, content in files.items():
        compared[name] = content
        if name.startswith("manifest/"):
            manifest = Manifest.from_json(content)
            assert manifest
            compared[name] = json.loads(content) | {"made_from": {**manifest.made_from, "write": 0}, "checksum": 0}
    return compared


@pytest.fixture
def spools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where shards lie until they are sent."""
    folder = tmp_path / "spools"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("writer", ["sharded_threads", "sharded_processes", "single_writer_queue"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_folder_is_what_a_local_one_would_be(
    bucket: str, tmp_path: Path, spools: Path, writer: str, compression: str
) -> None:
    options = {"shards": 3, "writer": writer, "compression": compression}
    written = tfr_assets.write(TABLE, f"{bucket}/out/rows", **options)
    tfr_assets.write(TABLE, tmp_path / "rows", **options)
    assert without_call(contents(f"{bucket}/out/rows")) == without_call(local(tmp_path / "rows"))
    assert written.urls == tuple(f"{bucket}/out/rows/rows-train.tfrecord-{i:05d}-of-00003" for i in range(3))
    assert (written.paths, written.records) == ((), 3000)
    assert list(spools.glob("tfr-spool-*")) == []
    ids = [i for batch in tfr_assets.batches(f"{bucket}/out/rows", 700) for i in batch["id"].tolist()]
    assert ids == list(range(3000))


def test_one_file_and_data_of_unknown_length(bucket: str, tmp_path: Path, spools: Path) -> None:
    written = tfr_assets.write(TABLE.to_batches(), f"{bucket}/one.tfrecord")
    tfr_assets.write(TABLE.to_batches(), tmp_path / "it" / "one.tfrecord")
    assert without_call(contents(bucket)) == without_call(local(tmp_path / "it"))
    assert written.urls == (f"{bucket}/one.tfrecord",)
    tfr_assets.write((batch for batch in TABLE.to_batches(100)), f"{bucket}/rows/", shards=4)
    tfr_assets.write((batch for batch in TABLE.to_batches(100)), tmp_path / "rows", shards=4)
    assert without_call(contents(f"{bucket}/rows")) == without_call(local(tmp_path / "rows"))


def test_another_number_of_shards_replaces_them_and_nothing_else(bucket: str) -> None:
    url = f"{bucket}/rows"
    tfr_assets.write(TABLE, url, shards=5)
    foreign = {"rows-train.tfrecord-00007-of-00009": b"?", "notes.txt": b"?", "rows-test.tfrecord-00000-of-00001": b"?"}
    for name, content in foreign.items():
        ObjectFolder(url).put(name, content)
    tfr_assets.write(TABLE, url, shards=2)
    names = {"feature_spec.json", *foreign}
    for index in range(2):
        name = f"rows-train.tfrecord-{index:05d}-of-00002"
        names |= {name, f"index/{name}.idx", f"manifest/{name}.json"}
    assert set(contents(url)) == names
    tfr_assets.write([b"a", b"b"], url, shards=1)  # records of which nothing is known
    assert "feature_spec.json" not in contents(url)


def test_a_shard_that_cannot_be_written_leaves_the_others_whole(bucket: str) -> None:
    url, rows = f"{bucket}/rows", [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 2**70}]
    batches = pa.table({"a": pa.array([1, 2, 3, 2**63], pa.uint64())})
    with pytest.raises(
        WriteError, match=rf"1 of 4 shards in {url} could not be written; the others are whole"
    ) as error:
        tfr_assets.write(batches, url, shards=4)
    assert isinstance(error.value.__cause__, SchemaError) and rows
    assert sum(key.startswith("manifest/") for key in contents(url)) == 3
    assert not any("00003-of-00004" in key or key.startswith(".") for key in contents(url))


def test_what_cannot_be_a_place_is_refused(bucket: str) -> None:
    ObjectFolder(bucket).put("flights/raw/inventory.json", b"{}")
    for path, shards, says in (
        (f"{bucket}/flights", 2, "is the folder of a dataset"),
        (f"{bucket}/rows", None, "a file's name must hold '.tfrecord'"),
        (f"{bucket}/x.tfrecord", 2, "with `shards`, give the folder"),
        (f"{bucket}/x y", 2, "dataset name 'x y'"),
        (f"{bucket}/x", 0, "shards=0 is not between"),
        ("ftp://x/y", 2, "must be a path on this machine, or a URL that begins with s3://, gs://, az://"),
        ("s3:///x/y", 2, "names no bucket"),
    ):
        with pytest.raises(ConfigError, match=says):
            tfr_assets.write(TABLE, path, shards=shards)
    with pytest.raises(WriteError, match=f"there is no bucket {bucket}x"):
        tfr_assets.write(TABLE, f"{bucket}x/rows", shards=2)
    assert set(contents(bucket)) == {"flights/raw/inventory.json"}


def test_no_credential_is_in_what_is_written(bucket: str) -> None:
    tfr_assets.write(TABLE, f"{bucket}/rows", shards=2, writer="sharded_processes")
    assert not any(SECRET.encode() in content for content in contents(bucket).values())


def test_a_store_that_fails_in_the_middle_leaves_no_manifest(
    between: Between, one_endpoint: str, one_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfr_assets.storage.objects.store._RETRIES", 1)
    url = f"{one_bucket}/rows"
    tfr_assets.write(TABLE, url, shards=2)
    before = contents(url)
    for failing in ("index/", "00001-of-00002", "feature_spec"):
        between.answer = lambda method, path, query, part=failing: (
            (503, "SlowDown") if method in ("PUT", "POST") and part in path else None
        )
        with pytest.raises(WriteError, match=r"the store failed after 1 retries \(503 SlowDown\)"):
            tfr_assets.write(TABLE, url, shards=2)
        between.answer = lambda *_: None
        after = contents(url)
        for name in [key for key in after if key.startswith("manifest/")]:
            manifest = Manifest.from_json(after[name])
            assert manifest and len(after[manifest.file]) == manifest.bytes
        assert uploads(one_endpoint, one_bucket) == [] and ".lock" not in after
    tfr_assets.write(TABLE, url, shards=2)
    assert without_call(contents(url)) == without_call(before)


_ROWS = 40_000
_WRITE = """
import sys
import tfr_assets
from tests.storage.test_write_to_store import _table

tfr_assets.write(_table(), sys.argv[1], shards=2, workers=1)
"""


def _table() -> pa.Table:
    return pa.table({"id": pa.array(range(_ROWS), pa.int64()), "text": [f"text {i} " * 50 for i in range(_ROWS)]})


def _start(url: str, folder: Path) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-c", _WRITE, url], env=environment, stderr=subprocess.PIPE)


@pytest.mark.parametrize(
    ("at", "again"), [("partNumber=2", False), ("uploadId", True), ("manifest/", False), ("manifest/", True)]
)
def test_a_writer_that_is_killed_in_the_middle_leaves_nothing_visible(
    between: Between, one_endpoint: str, one_bucket: str, tmp_path: Path, at: str, again: bool
) -> None:
    url, reached, go_on = f"{one_bucket}/rows", threading.Event(), threading.Event()
    tfr_assets.write(_table(), tmp_path / "rows", shards=2)
    if again:
        tfr_assets.write(_table(), url, shards=2)
    before = {key for key in contents(url) if key.startswith("manifest/")}

    def hold(method: str, path: str, query: str) -> None:
        is_end = at == "uploadId" and method == "POST" and query.startswith("uploadId")
        if is_end or (at != "uploadId" and method == "PUT" and at in f"{path}?{query}"):
            reached.set()
            go_on.wait(60)
            raise ConnectionError

    between.answer = hold
    process = _start(url, tmp_path)
    wait_for(lambda: reached.is_set() or process.poll() is not None)
    assert reached.is_set(), process.communicate()[1].decode()
    process.send_signal(signal.SIGKILL)
    process.wait()
    go_on.set()
    between.answer = lambda *_: None
    left = contents(url)
    manifests = {key for key in left if key.startswith("manifest/")}
    assert manifests < before if again and at in ("manifest/", "uploadId") else manifests <= before
    for key in manifests:
        manifest = Manifest.from_json(left[key])
        assert manifest and len(left[manifest.file]) == manifest.bytes
    with pytest.raises(tfr_assets.TfrError, match=r"no manifest was found there|is not complete|and not its manifest"):
        tfr_assets.batches(url)
    process = _start(url, tmp_path)
    assert process.wait() == 0, process.communicate()[1].decode()
    assert without_call(contents(url)) == without_call(local(tmp_path / "rows"))
    assert uploads(one_endpoint, one_bucket) == [] and not list(tmp_path.glob("tfr-spool-*"))


def test_a_second_writer_is_refused_and_the_first_goes_on(between: Between, one_bucket: str, tmp_path: Path) -> None:
    url, reached, go_on = f"{one_bucket}/rows", threading.Event(), threading.Event()

    def hold(method: str, path: str, query: str) -> None:
        if method == "PUT" and "index/" in path:
            reached.set()
            go_on.wait(60)

    between.answer = hold
    process = _start(url, tmp_path)
    wait_for(lambda: reached.is_set() or process.poll() is not None)
    with pytest.raises(WriteError, match=rf"rows: process {process.pid} on .* is writing there and holds .*/\.lock"):
        tfr_assets.write(TABLE, url, shards=2)
    go_on.set()
    assert process.wait() == 0, process.communicate()[1].decode()
    assert sum(len(batch["id"]) for batch in tfr_assets.batches(url)) == _ROWS


def test_a_manifest_that_came_from_elsewhere_is_not_left(between: Between, one_bucket: str) -> None:
    """What a writer leaves that lost its lease and does not know it yet."""
    url, put = f"{one_bucket}/one.tfrecord", []

    def put_first(method: str, path: str, query: str) -> None:
        if method == "PUT" and "manifest/" in path and not put:
            put.append(path)
            ObjectFolder(one_bucket).put("manifest/one.tfrecord.json", b"of another writer")

    between.answer = put_first
    with pytest.raises(WriteError, match="another process wrote this file at the same time"):
        tfr_assets.write(TABLE, url)
    assert not any(key.startswith("manifest/") for key in contents(one_bucket))


@pytest.mark.parametrize("url", ["s3://bkt/tr/x.tfrecord", "gs://b/x.tfrecord", "https://host/x.tfrecord"])
def test_a_url_that_was_made_a_path_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"was a URL before it became a path; give .*://… as text"):
        tfr_assets.write({"id": [1]}, Path(url))
    with pytest.raises(ConfigError, match="was a URL before it became a path"):
        tfr_assets.adopt(Path(url))
    with pytest.raises(ConfigError, match="nothing is written beside files by URL; they are read as they are"):
        tfr_assets.adopt(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["zz//x.tfrecord", "/x.tfrecord", "a/../x.tfrecord", "./x.tfrecord", ".."])
def test_keys_that_would_become_others_are_refused(one_bucket: str, key: str) -> None:
    with pytest.raises(ConfigError, match="has an empty part"):
        tfr_assets.write({"id": [1]}, f"{one_bucket}/{key}")
    with pytest.raises(ConfigError, match="has an empty part"):
        tfr_assets.batches(f"{one_bucket}/{key}")
    assert contents(one_bucket) == {}
