"""`tfr verify`, `inspect`, `merge` and `export` of URLs: as of local files, as streams, sending nothing again."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfr_assets
from tests.storage.conftest import client
from tests.storage.servers import Between
from tests.storage.test_objects import uploads
from tests.storage.test_write_to_store import contents, local, without_call
from tfr_assets.errors import ConfigError, DamagedFile, SourceError, WriteError
from tfr_assets.records.frames.scan import FaultKind
from tfr_assets.storage.objects.folder import ObjectFolder

ROWS = 3000
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int64()), "text": [f"text {i} " * 50 for i in range(ROWS)]})
LARGE = pa.table({"id": pa.array(range(45_000), pa.int64()), "text": [f"text {i} " * 50 for i in range(45_000)]})
NAME = "rows-train.tfrecord-00001-of-00003"


@pytest.fixture
def url(bucket: str) -> str:
    tfr_assets.write(TABLE, f"{bucket}/out/rows", shards=3)
    return f"{bucket}/out/rows"


def tfr(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tfr_assets.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_is_whole_is_verified(url: str, bucket: str) -> None:
    reports = tfr_assets.verify(url)
    assert [(report.path, report.records, report.ok) for report in reports] == [
        (f"{url}/rows-train.tfrecord-{i:05d}-of-00003", 1000, True) for i in range(3)
    ]
    assert len(tfr_assets.verify(bucket)) == 3 and tfr_assets.verify(f"{url}/{NAME}")[0].ok
    assert list(Path(tempfile.gettempdir()).glob("tfr-spool-*/0/rows")) == []


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_files_are_verified(bucket: str, compression: str) -> None:
    tfr_assets.write(TABLE, f"{bucket}/one.tfrecord", compression=compression)
    (report,) = tfr_assets.verify(f"{bucket}/one.tfrecord")
    assert report.ok and (report.compression, report.records) == (compression, ROWS)


def test_all_that_is_wrong_is_found(url: str) -> None:
    folder = ObjectFolder(url)
    names = [f"rows-train.tfrecord-{i:05d}-of-00003" for i in range(3)]
    content = bytearray(folder.get(names[0]) or b"")
    content[100] ^= 1
    folder.put(names[0], bytes(content))
    folder.delete([names[1]])
    index = bytearray(folder.get(f"index/{names[2]}.idx") or b"")
    index[0] ^= 1
    folder.put(f"index/{names[2]}.idx", bytes(index))
    folder.put("feature_spec.json", b"{}")
    folder.put("rows-train.tfrecord-00003-of-00004", b"stray")
    found = {(fault.path, fault.kind) for report in tfr_assets.verify(url) for fault in report.faults}
    assert {
        (f"{url}/{names[0]}", FaultKind.DATA_CRC),
        (f"{url}/{names[1]}", FaultKind.MISSING),
        (f"{url}/index/{names[2]}.idx", FaultKind.INDEX),
        (f"{url}/feature_spec.json", FaultKind.BESIDE),
        (f"{url}/rows-train.tfrecord-00003-of-00004", FaultKind.STRAY),
    } <= found
    assert all(path.startswith(url) for path, _ in found)


def test_a_manifest_that_is_damaged_is_named(url: str) -> None:
    ObjectFolder(url).put(f"manifest/{NAME}.json", b"{}")
    faults = [fault for report in tfr_assets.verify(url) for fault in report.faults]
    assert (f"{url}/manifest/{NAME}.json", FaultKind.MANIFEST) in {(fault.path, fault.kind) for fault in faults}


def test_files_of_others_are_verified_and_inspected(bucket: str, tmp_path: Path) -> None:
    tfr_assets.write(TABLE, tmp_path / "a.tfrecord")
    ObjectFolder(bucket).put("theirs/a.tfrecord", (tmp_path / "a.tfrecord").read_bytes())
    (report,) = tfr_assets.verify(f"{bucket}/theirs")
    assert report.ok and report.records == ROWS
    found = tfr_assets.inspect(f"{bucket}/theirs/a.tfrecord", first=1)
    assert (found.path, found.records, set(found.features)) == (f"{bucket}/theirs/a.tfrecord", ROWS, {"id", "text"})
    for act in (tfr_assets.verify, tfr_assets.inspect):
        with pytest.raises(ConfigError, match=f"there is no file or folder {bucket}/nothing"):
            act(f"{bucket}/nothing")
        with pytest.raises(SourceError, match=f"there is no bucket {bucket}x"):
            act(f"{bucket}x/a.tfrecord")
    ObjectFolder(bucket).put("empty/notes.txt", b"")
    with pytest.raises(ConfigError, match="there is no TFRecord file in"):
        tfr_assets.verify(f"{bucket}/empty")


def test_a_store_that_fails_while_it_is_verified_is_a_fault(
    between: Between, one_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfr_assets.storage.objects.store._RETRIES", 0)
    tfr_assets.write(TABLE, f"{one_bucket}/rows", shards=3)
    between.answer = lambda method, path, query: (503, "SlowDown") if method == "GET" and path.endswith(NAME) else None
    reports = tfr_assets.verify(f"{one_bucket}/rows")
    assert [report.ok for report in reports] == [True, False, True]
    assert "the store failed" in reports[1].faults[0].detail


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_shards_are_merged_to_what_a_local_merge_gives(bucket: str, tmp_path: Path, compression: str) -> None:
    url = f"{bucket}/rows"
    written = tfr_assets.write(TABLE, url, shards=3, compression=compression)
    tfr_assets.write(TABLE, tmp_path / "rows", shards=3, compression=compression)
    merged = tfr_assets.merge(written.urls, f"{bucket}/merged/all.tfrecord")
    here = tfr_assets.merge(sorted((tmp_path / "rows").glob("rows-*")), tmp_path / "merged" / "all.tfrecord")
    assert merged == here
    assert contents(f"{bucket}/merged") == local(tmp_path / "merged")
    assert all(report.ok for report in tfr_assets.verify(f"{bucket}/merged"))
    assert tfr_assets.merge(written.urls, tmp_path / "again" / "all.tfrecord") == here
    assert local(tmp_path / "again") == local(tmp_path / "merged")
    sent = tfr_assets.merge(sorted((tmp_path / "rows").glob("rows-*")), f"{bucket}/sent/all.tfrecord")
    assert sent == here and contents(f"{bucket}/sent") == contents(f"{bucket}/merged")


def test_a_merge_sends_no_record(between: Between, one_endpoint: str, one_bucket: str) -> None:
    written = tfr_assets.write(LARGE, f"{one_bucket}/rows", shards=4)
    assert min(manifest.bytes for manifest in written.manifests) > 5 << 20
    sizes: list[int] = []
    between.sent = lambda path, size: sizes.append(size)
    merged = tfr_assets.merge(written.urls, f"{one_bucket}/all.tfrecord")
    assert merged.records == 45_000
    assert max(sizes) < merged.index.bytes + 20_000 if merged.index else False
    ids = [i for batch in tfr_assets.batches(f"{one_bucket}/all.tfrecord") for i in batch["id"].tolist()]
    assert ids == list(range(45_000)) and uploads(one_endpoint, one_bucket) == []


def test_what_cannot_be_merged_is_refused_by_its_url(url: str, bucket: str, tmp_path: Path) -> None:
    urls = [f"{url}/rows-train.tfrecord-{i:05d}-of-00003" for i in range(3)]
    target = f"{bucket}/all.tfrecord"
    with pytest.raises(ConfigError, match=f"{urls[0]} is one of the files to merge"):
        tfr_assets.merge(urls, urls[0])
    with pytest.raises(WriteError, match=f"there is no bucket {bucket}x"):
        tfr_assets.merge(urls, f"{bucket}x/all.tfrecord")
    folder = ObjectFolder(url)
    content = folder.get(NAME) or b""
    folder.put(NAME, content[:-1])
    with pytest.raises(DamagedFile, match=rf"^{urls[1]} cannot be merged: {urls[1]}: record"):
        tfr_assets.merge(urls, target)
    folder.put(NAME, content)
    index = folder.get(f"index/{NAME}.idx") or b""
    folder.delete([f"index/{NAME}.idx"])
    with pytest.raises(DamagedFile, match=rf"{urls[1]}.*index"):
        tfr_assets.merge(urls, target)
    folder.put(f"index/{NAME}.idx", index)
    folder.delete([f"manifest/{NAME}.json"])
    with pytest.raises(DamagedFile, match=f"{urls[1]} cannot be merged: it has no manifest"):
        tfr_assets.merge(urls, target)
    with pytest.raises(ConfigError, match=r"there is no file or folder .*nothing"):
        tfr_assets.merge([f"{bucket}/nothing"], target)
    assert not any(key.startswith(("all", ".", "manifest")) for key in contents(bucket))


def test_a_shard_that_is_replaced_while_it_is_merged_is_never_joined(between: Between, one_bucket: str) -> None:
    written = tfr_assets.write(TABLE, f"{one_bucket}/rows", shards=3)
    folder, replaced = ObjectFolder(f"{one_bucket}/rows"), []

    def replace(method: str, path: str, query: str) -> None:
        if method == "POST" and path.endswith("all.tfrecord") and not replaced:
            replaced.append(path)
            folder.put(NAME, bytes(len(folder.get(NAME) or b"")))

    between.answer = replace
    with pytest.raises(WriteError, match="what was to be joined was replaced meanwhile"):
        tfr_assets.merge(written.urls, f"{one_bucket}/all.tfrecord")
    assert replaced and not any(key.startswith(("all", "manifest")) for key in contents(one_bucket))


def test_the_commands_take_urls(one_bucket: str, tmp_path: Path) -> None:
    pytest.importorskip("array_record")
    url = f"{one_bucket}/rows"
    tfr_assets.write(TABLE, url, shards=3)
    done = tfr("verify", url)
    assert done.returncode == 0 and f"in {url}" in done.stdout and "all 3 files are whole" in done.stdout, done.stderr
    found: list[dict[str, Any]] = json.loads(tfr("verify", "--json", url).stdout)
    assert [each["path"] for each in found] == [f"{url}/rows-train.tfrecord-{i:05d}-of-00003" for i in range(3)]
    done = tfr("inspect", f"{url}/{NAME}")
    assert done.returncode == 0 and NAME in done.stdout, done.stderr
    done = tfr("export", url, str(tmp_path / "x.array_record"))
    assert done.returncode == 0 and "3,000 records of 3 files" in done.stdout, done.stderr
    folder = ObjectFolder(url)
    folder.put(NAME, (folder.get(NAME) or b"")[:-1])
    done = tfr("verify", url)
    assert done.returncode == 1 and f"{url}/{NAME}: record" in done.stdout and "tfr-spool" not in done.stdout
    done = tfr("verify", f"{one_bucket}/nothing")
    assert done.returncode == 2 and done.stderr == f"tfr: there is no file or folder {one_bucket}/nothing\n"


def test_written_and_merged_are_the_same_after_a_second_time(url: str, bucket: str) -> None:
    urls = [f"{url}/rows-train.tfrecord-{i:05d}-of-00003" for i in range(3)]
    tfr_assets.merge(urls, f"{bucket}/all.tfrecord")
    first = contents(bucket)
    tfr_assets.merge(urls, f"{bucket}/all.tfrecord")
    assert without_call(contents(bucket)) == without_call(first)


def test_objects_that_stand_for_folders_are_no_files(one_bucket: str) -> None:
    url = f"{one_bucket}/out/rows"
    tfr_assets.write(TABLE, url, shards=2)
    s3, name = client(os.environ["AWS_ENDPOINT_URL"]), one_bucket.removeprefix("s3://")
    for key in ("out/", "out", "out/rows/", "out/rows", "out/rows/manifest/", "out/rows/index", "out/rows/empty/"):
        s3.put_object(Bucket=name, Key=key, Body=b"")
    for at in (one_bucket, f"{one_bucket}/out", url):
        assert [report.ok for report in tfr_assets.verify(at)] == [True, True]
    done = tfr("inspect", url)
    assert done.returncode == 0, done.stderr
    assert sum(len(batch["id"]) for batch in tfr_assets.batches(url)) == ROWS


def test_only_what_describes_files_is_fetched(between: Between, one_bucket: str) -> None:
    url = f"{one_bucket}/rows"
    tfr_assets.write(TABLE, url, shards=2)
    folder = ObjectFolder(url)
    for key in ("notes.txt", "huge.json", "other/huge.json"):
        folder.put(key, bytes(1 << 20))
    asked: list[str] = []
    between.answer = lambda method, path, query: asked.append(path) if method == "GET" else None
    assert all(report.ok for report in tfr_assets.verify(url))
    assert any("feature_spec.json" in path for path in asked)
    assert not [path for path in asked if "huge" in path or "notes" in path]
