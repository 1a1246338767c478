"""`tfr publish`: a dataset in an object store, as readers need it, sent once and never half."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfr_assets
from tests.storage.servers import Between
from tests.storage.test_objects import uploads
from tests.storage.test_write_to_store import contents
from tests.waiting import wait_for
from tfr_assets.errors import ConfigError, DamagedFile, StaleError, WriteError
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.sources import Source
from tfr_assets.storage.locks import hold_lock
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.merged import merge_shards
from tfr_assets.writing.plan import plan_shards
from tfr_assets.writing.publish import publish
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.shard import finish_shards, write_shard

ROWS = 3000
SENT = ("shards/", "merged/", "report.html")


def refresh(tmp_path: Path, shards: int, first: int = 0, wide: int = 50) -> Path:
    """Writes a dataset, as a run does, and returns its folder."""
    rows = range(first, first + ROWS)
    table = pa.table({"id": pa.array(rows, pa.int64()), "text": [f"text {i} " * wide for i in rows]})
    pq.write_table(table, tmp_path / "rows.parquet")
    dataset = Dataset("rows", Source(path=str(tmp_path / "rows.parquet")), shards=shards, root=tmp_path / "data")
    materialize_raw(dataset)
    plan = plan_shards(dataset)
    for shard in plan.shards:
        write_shard(plan, shard)
    finish_shards(plan)
    merge_shards(dataset)
    return dataset.layout.folder


def expected(folder: Path) -> dict[str, bytes]:
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {key: content for key, content in files.items() if key.startswith(SENT)}


def ids(url: str) -> list[int]:
    return [i for batch in tfr_assets.batches(url) for i in batch["id"].tolist()]


def test_a_dataset_is_there_as_it_is_here(bucket: str, tmp_path: Path) -> None:
    folder, url = refresh(tmp_path, 3), f"{bucket}/lake/rows"
    (folder / "report.html").write_text("<p>")
    done = publish(folder, url + "/")
    assert (done.url, done.sent, done.kept, done.removed) == (url, 4, 0, 0)
    assert contents(url) == expected(folder)
    assert ids(url) == list(range(ROWS))
    assert all(report.ok for report in tfr_assets.verify(url)) and len(tfr_assets.verify(url)) == 4


def test_what_is_there_is_not_sent_again_and_what_changed_is(bucket: str, tmp_path: Path) -> None:
    folder, url = refresh(tmp_path, 3), f"{bucket}/rows"
    publish(folder, url)
    assert publish(folder, url).sent == 0
    ObjectFolder(url).delete(["shards/rows-train.tfrecord-00001-of-00003"])
    ObjectFolder(url).put("shards/index/rows-train.tfrecord-00002-of-00003.idx", b"")
    ObjectFolder(url).put("merged/manifest/rows-train.tfrecord.json", b"{}")
    done = publish(folder, url)
    assert (done.sent, done.kept) == (3, 1) and contents(url) == expected(folder)
    refresh(tmp_path, 2, first=ROWS)
    ObjectFolder(url).put("shards/notes.tfrecord", b"of somebody else")
    done = publish(folder, url)
    assert (done.sent, done.kept, done.removed) == (3, 0, 3)
    assert contents(url) == {**expected(folder), "shards/notes.tfrecord": b"of somebody else"}
    assert ids(url) == list(range(ROWS, 2 * ROWS))


def test_a_folder_of_write_is_published_too(bucket: str, tmp_path: Path) -> None:
    tfr_assets.write({"id": list(range(10))}, tmp_path / "few", shards=2)
    publish(tmp_path / "few", f"{bucket}/few")
    assert ids(f"{bucket}/few") == list(range(10))


def test_damage_here_is_not_published(bucket: str, tmp_path: Path) -> None:
    folder, url = refresh(tmp_path, 3), f"{bucket}/rows"
    shard = folder / "shards" / "rows-train.tfrecord-00001-of-00003"
    content = bytearray(shard.read_bytes())
    content[100] ^= 1
    shard.write_bytes(content)
    with pytest.raises(DamagedFile, match="00001-of-00003 is not what its manifest says; `tfr verify"):
        publish(folder, url)
    assert f"shards/manifest/{shard.name}.json" not in contents(url) and ".lock" not in contents(url)
    shard.unlink()
    (folder / "shards" / "manifest" / f"{shard.name}.json").unlink()
    with pytest.raises(DamagedFile, match=r"shards is not as it was written, so that nothing was published:\n"):
        publish(folder, url)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ConfigError, match="holds no TFRecord files with manifests"):
        publish(tmp_path / "nothing", url)


def test_a_dataset_that_a_run_works_on_is_not_published(bucket: str, tmp_path: Path) -> None:
    folder = refresh(tmp_path, 2)
    with hold_lock(folder / ".lock"), pytest.raises(WriteError, match="a run works on dataset 'rows'"):
        publish(folder, f"{bucket}/rows")
    assert contents(bucket) == {}


def test_a_file_that_is_replaced_while_it_is_sent_does_not_count(
    between: Between, one_bucket: str, tmp_path: Path
) -> None:
    path = tmp_path / "few"
    tfr_assets.write({"id": list(range(10))}, path, shards=1)

    def replace(method: str, key: str, query: str) -> None:
        if method == "PUT" and "index/" in key:
            tfr_assets.write({"id": list(range(20))}, path, shards=1)

    between.answer = replace
    with pytest.raises(WriteError, match="was replaced while it was sent"):
        publish(path, f"{one_bucket}/few")
    assert not any(key.startswith("few/manifest") for key in contents(one_bucket))
    between.answer = lambda *_: None
    publish(path, f"{one_bucket}/few")
    assert ids(f"{one_bucket}/few") == list(range(20))


def test_the_command_is_killed_and_completes(
    between: Between, one_endpoint: str, one_bucket: str, tmp_path: Path
) -> None:
    folder, url, reached, go_on = (
        refresh(tmp_path, 2, wide=800),
        f"{one_bucket}/rows",
        threading.Event(),
        threading.Event(),
    )

    def hold(method: str, path: str, query: str) -> None:
        if method == "PUT" and "partNumber=2" in query:
            reached.set()
            go_on.wait(60)
            raise ConnectionError

    between.answer = hold
    command = [sys.executable, "-m", "tfr_assets.cli", "publish", str(folder), url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: reached.is_set() or process.poll() is not None)
    assert reached.is_set(), process.communicate()
    process.send_signal(signal.SIGKILL)
    process.wait()
    go_on.set()
    between.answer = lambda *_: None
    left = contents(url)
    for key in [key for key in left if "/manifest/" in key]:
        manifest = Manifest.from_json(left[key])
        assert manifest and len(left[f"{key.partition('/')[0]}/{manifest.file}"]) == manifest.bytes
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"{url}: " in done.stdout, done.stderr
    assert contents(url) == expected(folder) and uploads(one_endpoint, one_bucket) == []
    done = subprocess.run([*command[:-1], "/local"], capture_output=True, text=True, check=False)
    assert (
        done.returncode == 2 and "give the URL of a folder in an object store, such as s3://bucket/rows" in done.stderr
    )


def test_files_that_were_adopted_are_one_set_there_too(one_bucket: str, tmp_path: Path) -> None:
    folder, url = tmp_path / "foreign", f"{one_bucket}/foreign"
    folder.mkdir()
    for part in range(3):
        path = tmp_path / f"{part}.tfrecord"
        tfr_assets.write({"id": list(range(10 * part, 10 * part + 10))}, path)
        path.rename(folder / f"part-{part}.tfrecord")
    tfr_assets.adopt(folder)
    publish(folder, url)
    assert ids(url) == list(range(30)) and all(report.ok for report in tfr_assets.verify(url))
    assert ids(f"{url}/part-1.tfrecord") == list(range(10, 20))
    with pytest.raises(ConfigError, match="give a word that one of their names has") as caught:
        tfr_assets.batches(url, split="0")
    assert "part-#.tfrecord" in str(caught.value)
    ObjectFolder(url).delete(["part-2.tfrecord", "manifest/part-2.tfrecord.json"])
    with pytest.raises(StaleError, match=r"has 2 files like part-0\.tfrecord, and 3 were adopted"):
        tfr_assets.batches(url)


@pytest.mark.parametrize("url", ["s3a://bucket/x", "/local/x", "S3://bucket/x"])
def test_only_urls_of_stores_are_published_to(tmp_path: Path, url: str) -> None:
    tfr_assets.write({"id": [1]}, tmp_path / "few", shards=1)
    with pytest.raises(ConfigError, match="must be a URL that begins with s3://, gs://, az://"):
        publish(tmp_path / "few", url)
