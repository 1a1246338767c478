"""Reading from an object store: what a local folder gives, in parts that are fetched at once, and no more of them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import tfr_assets
from tests.storage.servers import Between
from tfr_assets.errors import ConfigError, DamagedFile, SourceError, StaleError
from tfr_assets.sources import Source, take_inventory
from tfr_assets.storage.objects import ranges
from tfr_assets.storage.objects.folder import ObjectFolder

ROWS = 3000
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int64()), "text": [f"text {i} " * 50 for i in range(ROWS)]})
LARGE = pa.table({"id": pa.array(range(60_000), pa.int64()), "text": [f"text {i} " * 50 for i in range(60_000)]})
NAME = "rows-train.tfrecord-00001-of-00003"


@pytest.fixture
def url(bucket: str) -> str:
    tfr_assets.write(TABLE, f"{bucket}/rows", shards=3)
    return f"{bucket}/rows"


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


@pytest.mark.parametrize("reader", [None, "naive", "vectorized", "columnar", "bounded", "file_queue"])
def test_every_reader_reads_what_was_written(url: str, reader: str | None) -> None:
    dataset = tfr_assets.read(url, 500, reader=reader)
    assert dataset.cardinality() == 6 and sorted(ids(dataset)) == list(range(ROWS))


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_an_iterator_is_saved_and_goes_on(bucket: str, tmp_path: Path, compression: str) -> None:
    tfr_assets.write(TABLE, f"{bucket}/rows", shards=3, compression=compression)

    def iterator() -> Any:
        return iter(tfr_assets.read(f"{bucket}/rows", 500, reader="resumable", shuffle=1000, seed=3))

    first = iterator()
    seen = [int(i) for _ in range(2) for i in next(first)["id"]]
    saved = tf.train.Checkpoint(iterator=first).save(str(tmp_path / "checkpoint"))
    left = ids(first)
    second = iterator()
    tf.train.Checkpoint(iterator=second).restore(saved)
    assert ids(second) == left and sorted(seen + left) == list(range(ROWS))


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_files_of_any_compression(bucket: str, compression: str) -> None:
    tfr_assets.write(TABLE, f"{bucket}/rows", shards=2, compression=compression)
    tfr_assets.write(TABLE, f"{bucket}/one.tfrecord", compression=compression)
    for place in (f"{bucket}/rows", f"{bucket}/rows/", f"{bucket}/one.tfrecord"):
        assert ids(tfr_assets.batches(place, 700)) == list(range(ROWS))
    shares = [ids(tfr_assets.batches(f"{bucket}/rows", shard=(worker, 7))) for worker in range(7)]
    assert [i for share in shares for i in share] == list(range(ROWS))


def test_a_share_fetches_its_part_only(between: Between, one_bucket: str) -> None:
    url = f"{one_bucket}/one.tfrecord"
    written = tfr_assets.write(LARGE, url)
    assert len(written.manifests[0].marks) >= 1
    between.requests.clear()
    got = ids(tfr_assets.batches(url, shard=(3, 4)))
    assert got == list(range(45_000, 60_000))
    files = [method for method, path in between.requests if path.endswith("one.tfrecord") and method == "GET"]
    assert len(files) * ranges.PART < written.bytes


def test_records_are_those_of_the_local_reader(url: str, tmp_path: Path) -> None:
    tfr_assets.write(TABLE, tmp_path / "rows", shards=3)
    there = tfr_assets.batches(url, 1000, into="arrow")
    here = tfr_assets.batches(tmp_path / "rows", 1000, into="arrow")
    assert all(a.equals(b) for a, b in zip(there, here, strict=True))


def test_batches_can_be_continued(url: str) -> None:
    first = tfr_assets.batches(url, 100)
    taken = [next(first) for _ in range(7)]
    second = tfr_assets.batches(url, 100)
    second.restore(first.state())
    assert ids(taken) + ids(second) == list(range(ROWS))


def test_damage_is_named_or_left_out(url: str) -> None:
    folder = ObjectFolder(url)
    content = bytearray(folder.get(NAME) or b"")
    content[100] ^= 1
    folder.put(NAME, bytes(content))
    with pytest.raises(DamagedFile, match=rf"{url}/{NAME}: record 0 at byte 12"):
        ids(tfr_assets.batches(url))
    with pytest.warns(UserWarning, match="left out 1 of 3000"):
        assert len(ids(tfr_assets.batches(url, on_error="skip"))) == ROWS - 1


def test_what_is_lacking_is_named(url: str, bucket: str) -> None:
    batches = tfr_assets.batches(url)
    folder = ObjectFolder(url)
    content = folder.get(NAME) or b""
    folder.put(NAME, content[:-1])
    with pytest.raises(DamagedFile, match=rf"{NAME}: \d+ bytes, its manifest says"):
        tfr_assets.batches(url)
    folder.delete([NAME])
    with pytest.raises(SourceError, match=rf"{url}/{NAME}: is not there; have it put back"):
        ids(batches)
    with pytest.raises(StaleError, match=f"(?s)rows is not complete.*{NAME}: missing"):
        tfr_assets.batches(url)
    folder.delete([f"manifest/{NAME}.json"])
    with pytest.raises(StaleError, match="is not complete"):
        tfr_assets.batches(url)
    with pytest.raises(ConfigError, match="no manifest was found there"):
        tfr_assets.batches(f"{bucket}/nothing")
    with pytest.raises(SourceError, match=f"there is no bucket {bucket}x"):
        tfr_assets.batches(f"{bucket}x/nothing")


def test_a_file_that_is_replaced_while_it_is_read_is_never_mixed(bucket: str) -> None:
    url = f"{bucket}/rows"
    tfr_assets.write(LARGE, url, shards=1)
    batches = tfr_assets.batches(url, 100, workers=1)
    got = ids([next(batches) for _ in range(3)])
    other = LARGE.set_column(0, "id", pa.array(range(60_000, 120_000), pa.int64()))
    tfr_assets.write(other, url, shards=1)
    with pytest.raises((StaleError, SourceError)):
        got += ids(batches)
    assert got == list(range(len(got)))


def test_a_store_that_fails_in_the_middle_is_an_error_and_for_a_moment_is_none(
    between: Between, one_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfr_assets.storage.objects.store._RETRIES", 1)
    url, failures = f"{one_bucket}/rows", [1]
    tfr_assets.write(TABLE, url, shards=3)
    batches = tfr_assets.batches(url)
    between.answer = lambda method, path, query: (
        (503, "SlowDown") if NAME in path and failures and failures.pop() else None
    )
    assert ids(batches) == list(range(ROWS)) and not failures
    batches = tfr_assets.batches(url)
    between.answer = lambda method, path, query: (503, "SlowDown") if path.endswith(NAME) else None
    with pytest.raises(SourceError, match=rf"{NAME}: the store failed after 1 retries \(503"):
        ids(batches)
    between.answer = lambda method, path, query: (400, "ExpiredToken") if method == "GET" else None
    with pytest.raises(SourceError, match="the credential has expired"):
        tfr_assets.batches(url)


def test_raw_data_in_a_store_is_a_source(bucket: str, tmp_path: Path) -> None:
    folder = ObjectFolder(f"{bucket}/raw")
    for number in range(3):
        pq.write_table(TABLE.slice(number * 1000, 1000), tmp_path / "x.parquet")
        folder.put(f"{number}.parquet", (tmp_path / "x.parquet").read_bytes())
    for path in (f"{bucket}/raw", f"{bucket}/raw/*.parquet"):
        inventory = take_inventory(Source(path=path), tmp_path / "landing")
        assert inventory.rows == ROWS and len(inventory.files) == 3
    assert take_inventory(Source(path=f"{bucket}/raw/1.parquet"), tmp_path / "landing").rows == 1000
    with pytest.raises(SourceError, match="there is no such file or folder"):
        take_inventory(Source(path=f"{bucket}/nothing"), tmp_path / "landing")
    with pytest.raises(SourceError, match=f"there is no bucket {bucket}x"):
        take_inventory(Source(path=f"{bucket}x/raw"), tmp_path / "landing")
