"""All writers write the same records; those that keep the order write the same bytes, with any number of workers."""

import sys
import time
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.encoding import encode
from tests.records.reference import examples, frames, payloads_of
from tests.writing.conftest import WRITERS, files, table
from tests.writing.written_files import names, payloads
from tfr_assets.layout import assign_rows, index_path
from tfr_assets.records.arrow.buffers import Pool
from tfr_assets.records.frames.examine import examine, is_intact
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.writing.write import write
from tfr_assets.writing.writers import rows as rows_module
from tfr_assets.writing.writers.payloads import PAYLOADS, PayloadEncoder
from tfr_assets.writing.writers.pieces import End, Piece
from tfr_assets.writing.writers.rows import StreamRows, TableRows, rows_of
from tfr_assets.writing.writers.single_writer_queue import single_writer_queue

single_writer_queue_module = sys.modules[single_writer_queue.__module__]
THREADED = [name for name in WRITERS if name != "sharded_processes"]


pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


def in_batches(whole: pa.Table, rows: int) -> Iterator[pa.RecordBatch]:
    yield from whole.to_batches(max_chunksize=rows)


def stream_of(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Lets even little data be too much to look at all of it, and distributes it in blocks of so many rows."""
    monkeypatch.setattr(rows_module, "_LOOK_AHEAD", 1)
    monkeypatch.setattr(rows_module, "_BLOCK_ROWS", block)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("shards", [None, 3])
def test_every_writer_writes_all_records_of_a_table(writer: str, shards: int | None, tmp_path: Path) -> None:
    data = table(1000)
    path = tmp_path / ("x.tfrecord" if shards is None else "x")
    written = write(data, path, shards=shards, writer=WRITERS[writer], workers=2)
    found = payloads(written)
    cuts = assign_rows(1000, shards or 1)
    assert [len(each) for each in found] == [shard.rows for shard in cuts]
    expected = encode(*data.to_batches())
    for shard, each in zip(cuts, found, strict=True):
        ours, theirs = each, expected[shard.start : shard.stop]
        assert (ours == theirs) if WRITERS[writer].keeps_order else (sorted(ours) == sorted(theirs))


@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer_writes_all_records_of_a_stream(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_of(monkeypatch, block=8)
    data = table(300)
    written = write(in_batches(data, 37), tmp_path / "x", shards=3, writer=WRITERS[writer], workers=2)
    expected = encode(*data.to_batches())
    for shard, found in enumerate(payloads(written)):
        theirs = [expected[row] for row in range(300) if row // 8 % 3 == shard]
        assert (found == theirs) if WRITERS[writer].keeps_order else (sorted(found) == sorted(theirs))


@pytest.mark.parametrize("writer", [name for name in THREADED if WRITERS[name].keeps_order])
@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_the_number_of_workers_changes_no_byte(writer: str, compression: str, tmp_path: Path) -> None:
    found = []
    for workers in (1, 2, 5):
        folder = tmp_path / str(workers)
        written = write(
            table(2000), folder / "x", shards=3, writer=WRITERS[writer], workers=workers, compression=compression
        )
        for path, manifest in zip(written.paths, written.manifests, strict=True):
            assert is_intact(path, manifest) and Manifest.load(path) == manifest
        found.append({name: content for name, content in files(folder / "x").items() if "manifest" not in name})
    assert found[0] == found[1] == found[2]


def test_processes_write_the_same_bytes_as_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream_of(monkeypatch, block=16)
    found = {}
    for writer in ("sharded_processes", "sharded_threads"):
        written = write(in_batches(table(500), 100), tmp_path / writer, shards=5, writer=writer, compression="gzip")
        found[writer] = [path.read_bytes() for path in written.paths]
        found[writer] += [index_path(path).read_bytes() for path in written.paths]
        assert all(examine(*each).ok for each in zip(written.paths, written.manifests, strict=True))
    assert found["sharded_processes"] == found["sharded_threads"]


@examples(40)
@given(
    rows=st.integers(0, 300),
    shards=st.integers(1, 7),
    workers=st.integers(1, 9),
    batch=st.integers(1, 120),
    block=st.integers(1, 40),
    known=st.booleans(),
    writer=st.sampled_from(THREADED),
)
def test_any_number_of_rows_goes_to_any_number_of_shards_by_any_number_of_workers(
    tmp_path_factory: pytest.TempPathFactory,
    rows: int,
    shards: int,
    workers: int,
    batch: int,
    block: int,
    known: bool,
    writer: str,
) -> None:
    data = pa.table({"n": pa.array(range(rows), pa.int64())})
    with pytest.MonkeyPatch.context() as patch:
        stream_of(patch, block)
        nothing = pa.record_batch([pa.array([], pa.int64())], ["n"])
        source = data if known else chain([nothing], in_batches(data, batch))
        folder = tmp_path_factory.mktemp("any") / "x"
        written = write(source, folder, shards=shards, workers=workers, writer=WRITERS[writer])
    found = payloads(written)
    expected = encode(*data.to_batches()) if rows else []
    assert sorted(record for each in found for record in each) == sorted(expected)
    assert written.records == rows == sum(manifest.records for manifest in written.manifests)
    if known:
        assert max(map(len, found)) - min(map(len, found)) <= 1
        if WRITERS[writer].keeps_order:
            assert [record for each in found for record in each] == expected
    else:
        assert max(map(len, found)) - min(map(len, found)) <= block
    assert not [name for name in names(folder) if name.endswith(".tmp")]


@examples(300)
@given(batches=st.lists(st.integers(0, 50), max_size=12), shards=st.integers(1, 9), block=st.integers(1, 30))
def test_a_row_of_a_stream_goes_where_its_number_says(batches: list[int], shards: int, block: int) -> None:
    schema = pa.schema([("n", pa.int64())])
    cuts = np.cumsum([0, *batches]).tolist()
    stream = (pa.record_batch([list(range(a, b))], schema) for a, b in pairwise(cuts))
    pieces = list(StreamRows(stream, schema, False, shards, block).pieces())
    seen: dict[int, list[int]] = {shard: [] for shard in range(shards)}
    for piece in pieces:
        if isinstance(piece, Piece):
            rows = piece.batch.column(0).to_pylist()
            assert rows[0] == piece.first_row
            seen[piece.shard] += rows
    assert seen == {s: [row for row in range(cuts[-1]) if row // block % shards == s] for s in range(shards)}
    assert pieces[len(pieces) - shards :] == [End(shard, len(seen[shard])) for shard in range(shards)]


def test_a_stream_shorter_than_the_look_ahead_is_cut_as_a_table_is() -> None:
    whole = table(100)
    rows = rows_of(in_batches(whole, 9), 4)
    assert isinstance(rows, TableRows) and rows.table.equals(whole)


def test_a_longer_one_gives_every_shard_rows_of_what_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_LOOK_AHEAD", 10_000)
    values = pa.record_batch({"x": pa.array([b"x" * 1000] * 5)})
    for shards, block in ((1, 10), (4, 2), (10, 1), (11, 1), (1000, 1)):  # two batches are more than 10 kB
        rows = rows_of(iter([values] * 100), shards)
        assert isinstance(rows, StreamRows) and rows.block == block
    monkeypatch.setattr(rows_module, "_BLOCK_BYTES", 2100)
    rows = rows_of(iter([values] * 100), 2)
    assert isinstance(rows, StreamRows) and rows.block == 2


def test_a_queue_without_order_writes_the_same_records(tmp_path: Path) -> None:
    data = pa.table({"n": range(50_000)})
    written = write(data, tmp_path / "x.tfrecord", writer="single_writer_queue", workers=4, ordered=False)
    assert sorted(payloads_of(written.paths[0].read_bytes())) == sorted(encode(*data.to_batches()))


@pytest.mark.parametrize("ordered", [True, False])
def test_a_queue_has_only_as_much_memory_as_may_wait(
    ordered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: set[int] = set()

    class Watched(Pool):
        def take(self, size: int) -> np.ndarray:
            memory = super().take(size)
            places.add(memory.__array_interface__["data"][0])
            return memory

    monkeypatch.setattr(single_writer_queue_module, "Pool", Watched)
    data = pa.table({"x": [b"x" * 10_000] * 6000})
    waiting = 4 * single_writer_queue_module._WAITING // 400_000  # an encoder gives 500 kB at a time
    written = write(
        data, tmp_path / "x.tfrecord", writer="single_writer_queue", workers=4, ordered=ordered,
        progress=lambda records: time.sleep(0.001),
    )  # fmt: skip
    assert written.bytes > 60_000_000
    filled, waited_with, written_now = 3, 3, 3  # of three encoders, and of the writer on its way
    assert len(places) <= waiting + filled + waited_with + written_now


@examples(200)
@given(values=st.lists(st.binary(max_size=40), max_size=60), start=st.integers(0, 60))
def test_payloads_are_framed_as_they_are(values: list[bytes], start: int) -> None:
    batch = pa.record_batch([values], PAYLOADS).slice(start)
    made = list(PayloadEncoder().encode(batch))
    assert b"".join(bytes(some.data) for some in made) == frames(values[start:])
    assert [size for some in made for size in some.sizes.tolist()] == [len(value) + 16 for value in values[start:]]


def test_payloads_larger_than_the_buffer_are_framed(tmp_path: Path) -> None:
    values = [b"a", b"b" * 3_000_000, b"", b"c" * 600_000, b"d" * 500_000, b"e"]
    encoder, found = PayloadEncoder(), []
    for _ in range(2):
        found.append(b"".join(bytes(some.data) for some in encoder.encode(pa.record_batch([values], PAYLOADS))))
    assert found[0] == found[1]
    path = tmp_path / "x.tfrecord"
    path.write_bytes(found[0])
    report = examine(path)
    assert report.ok and (report.records, report.payload_bytes) == (6, sum(map(len, values)))
