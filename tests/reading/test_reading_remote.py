"""Reading from elsewhere: a real web server, and fsspec's storage in memory."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
import tensorflow as tf

import tfr_assets
from tfr_assets.errors import ConfigError, DamagedFile, SourceError, StaleError
from tfr_assets.layout import Layout
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.registry import default_reader

from .web import serving

Written = Callable[..., Layout]
TABLE = pa.table({"id": pa.array(range(3000), pa.int64()), "text": [f"text {i} " * 50 for i in range(3000)]})
READERS = [
    "naive",
    "prefetch",
    "interleave",
    "parallel_map",
    "vectorized",
    "autotuned",
    "bounded",
    "file_queue",
    "columnar",
]


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The URL of the test's folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def memory(written: Written) -> Iterator[tuple[str, Any]]:
    """A dataset's URL in memory, and the file system."""
    layout, fs = written(TABLE), fsspec.filesystem("memory")
    fs.put(str(layout.folder), "/bucket/sample", recursive=True)
    yield "memory://bucket/sample", fs
    fs.rm("/bucket", recursive=True)


def ids(dataset: tf.data.Dataset) -> list[int]:
    return [int(i) for batch in dataset for i in batch["id"]]


@pytest.mark.parametrize("reader", [None, *READERS])
def test_a_web_servers_files_are_read_like_local_ones(written: Written, served: str, reader: str | None) -> None:
    written(TABLE)
    dataset = tfr_assets.read(f"{served}/sample", 500, reader=reader)
    assert dataset.cardinality() == 6
    assert sorted(ids(dataset)) == list(range(3000))


@pytest.mark.parametrize("where", ["sample/shards", "sample/merged/", "sample/merged/sample-train.tfrecord"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_folders_and_files_of_any_compression(written: Written, served: str, where: str, compression: str) -> None:
    written(TABLE, compression=compression)
    assert ids(tfr_assets.read(f"{served}/{where}", reader="vectorized")) == list(range(3000))


def test_storage_in_memory_is_read_by_several_workers(memory: tuple[str, Any]) -> None:
    url, _ = memory
    shares = [ids(tfr_assets.read(url, shard=(worker, 4), reader="vectorized")) for worker in range(4)]
    assert [i for share in shares for i in share] == list(range(3000))
    assert ids(tfr_assets.read(url, files="merged", reader="vectorized")) == list(range(3000))


def test_an_iterator_closed_early_ends_its_transfers(memory: tuple[str, Any]) -> None:
    iterator = iter(tfr_assets.read(memory[0], 8))
    next(iterator)
    del iterator
    for thread in threading.enumerate():
        if thread.name.startswith("read memory://"):
            thread.join(10)
            assert not thread.is_alive()


def test_damage_is_named_by_its_url_or_left_out(memory: tuple[str, Any]) -> None:
    url, fs = memory
    path = "/bucket/sample/shards/sample-train.tfrecord-00001-of-00003"
    content = bytearray(fs.cat(path))
    content[100] ^= 1
    fs.pipe(path, bytes(content))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"memory://bucket/.*-00001-of-00003: record 0 at byte 12"):
        ids(tfr_assets.read(url))
    with pytest.warns(UserWarning, match="left out 1 of 3000"):
        assert len(ids(tfr_assets.read(url, on_error="skip"))) == 2999


def test_a_file_that_vanishes_is_an_error(memory: tuple[str, Any]) -> None:
    url, fs = memory
    dataset = tfr_assets.read(url)
    fs.rm("/bucket/sample/shards/sample-train.tfrecord-00001-of-00003")
    with pytest.raises(tf.errors.InvalidArgumentError, match="00001-of-00003: is no longer there; have it put back"):
        ids(dataset)


def test_a_url_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"nosuch://x: nothing here reads nosuch://; use https"):
        tfr_assets.read("nosuch://x")


def test_worker_processes_do_not_see_this_ones_memory(memory: tuple[str, Any]) -> None:
    with pytest.raises(ConfigError, match="'file_queue' reads in other processes, which do not see memory://"):
        tfr_assets.read(memory[0], reader="file_queue")


def test_a_set_that_its_manifests_do_not_vouch_for_is_refused(memory: tuple[str, Any]) -> None:
    url, fs = memory
    path = "/bucket/sample/shards/sample-train.tfrecord-00001-of-00003"
    fs.pipe(path, fs.cat(path) + b"x")
    with pytest.raises(DamagedFile, match=r"get them again:\n  sample-train.tfrecord-00001-of-00003: \d+ bytes"):
        tfr_assets.read(url)
    fs.rm(path)
    with pytest.raises(StaleError, match=r"shards is not complete(?s:.*)-00001-of-00003: missing"):
        tfr_assets.read(url, files="shards")
    assert ids(tfr_assets.read(url)) == list(range(3000))  # its merged file, as of a local dataset
    fs.rm("/bucket/sample/merged/manifest", recursive=True)
    with pytest.raises(StaleError, match="shards is not complete"):
        tfr_assets.read(url)


def test_a_url_without_a_dataset_is_refused(memory: tuple[str, Any], served: str) -> None:
    for url in ("memory://bucket/other", f"{served}/nothing", f"{served}/x/x-train.tfrecord"):
        with pytest.raises(ConfigError, match=r"no manifest was found there|there is no "):
            tfr_assets.read(url)
    with pytest.raises(ConfigError, match=r"reads local files only, and memory://.* is a URL: leave reader= out"):
        tfr_assets.read(memory[0], reader="data_service")


def test_the_merged_file_is_read_in_place_of_the_shards(memory: tuple[str, Any]) -> None:
    url, fs = memory
    assert ids(tfr_assets.read(url, reader="merged")) == list(range(3000))
    fs.rm("/bucket/sample/merged/sample-train.tfrecord")
    with pytest.raises(StaleError, match=r"there is no merged file memory://bucket/.*; `tfr run sample` writes it"):
        tfr_assets.read(url, reader="merged")


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_records_of_any_storage_are_read_by_number(
    written: Written, served: str, memory: tuple[str, Any], compression: str
) -> None:
    written(TABLE, compression=compression)
    for url in (f"{served}/sample", memory[0]):
        opened = tfr_assets.open(url)
        assert opened.take([2999, 5, 5])["id"].tolist() == [2999, 5, 5] and opened.splits == ["train"]
        assert sorted(ids(opened.batches(500, shuffle="global"))) == list(range(3000))
        assert ids(tfr_assets.read(url, reader="resumable")) == list(range(3000))
        assert [report.ok for report in opened.verify()] == [True] * 3


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("etags", [True, False])
def test_records_of_a_web_server_are_of_the_version_that_was_opened(
    written: Written, tmp_path: Path, ranges: bool, etags: bool
) -> None:
    layout = written(TABLE)
    with serving(layout.folder) as web:
        web.ranges, web.etags = ranges, etags
        opened, touched = tfr_assets.open(web.url), tfr_assets.open(web.url)
        assert touched[1500]["id"] == 1500
        asked = [wanted for path, wanted in web.requests if path.endswith("-00003") and wanted != "bytes=0-11"]
        assert all(asked) == (ranges and etags)
        written(TABLE.set_column(0, "id", pa.array(range(1, 3001), pa.int64())))
        with pytest.raises(StaleError, match="was replaced"):
            opened[1500]
        if ranges and etags:
            with pytest.raises(SourceError, match="was replaced or removed while it was read"):
                touched[1500]
        else:
            assert touched[1500]["id"] == 1500  # of the copy that was fetched
        assert tfr_assets.open(web.url)[1500]["id"] == 1501


def test_a_damaged_record_on_a_web_server_is_named(written: Written) -> None:
    layout = written(TABLE)
    path = layout.folder / "shards" / "sample-train.tfrecord-00001-of-00003"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with serving(layout.folder) as web:
        opened = tfr_assets.open(web.url)
        with pytest.raises(DamagedFile, match=r"http://.*-00001-of-00003: record 0 at byte 12: data CRC is wrong"):
            opened[1000]
        found, missing = opened.take(range(3000), on_error="skip")
        assert len(found["id"]) == 2999 and missing.tolist() == [1000]
        web.ranges = False
        with pytest.raises(DamagedFile, match="damaged files are only read in their order"):
            tfr_assets.open(web.url)[1000]


def test_the_default_of_urls_is_that_of_local_files(memory: tuple[str, Any]) -> None:
    files = locate(memory[0])
    assert default_reader(files) == "columnar" and default_reader(files, checked=False) == "autotuned"
    assert ids(tfr_assets.read(memory[0])) == list(range(3000))  # in their order
