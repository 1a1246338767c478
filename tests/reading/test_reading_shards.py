"""Workers' shares: together every record once, whatever the files, and each about as many."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import tfr_assets
from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout, index_path
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.locate.shares import plan_files
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.registry import READERS
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.features import FeatureSpec

from .datasets import write_dataset

Written = Callable[..., Layout]


def table(rows: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(range(rows), pa.int64()), "text": pa.array(["x" * (i % 7) for i in range(rows)], pa.string())}
    )


def ids(dataset: tf.data.Dataset) -> list[int]:
    return [int(i) for batch in dataset for i in batch["id"]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int, str], Path]:
    """Datasets by number of rows, of files, and compression."""
    return {
        (rows, shards, compression): write_dataset(
            table(rows), tmp_path_factory.mktemp("d"), shards=shards, compression=compression
        ).folder
        for rows in (0, 1, 17)
        for shards in (1, 4)
        for compression in ("none", "gzip")
    }


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_all_workers_together_read_every_record_once(
    folders: dict[tuple[int, int, str], Path], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(folders)))
    workers = data.draw(st.integers(1, 6))
    reader = data.draw(st.sampled_from(["sharded", "vectorized", "autotuned", "bounded"]))
    shares = [
        ids(tfr_assets.read(folders[key], 3, files="shards", reader=reader, shard=(i, workers))) for i in range(workers)
    ]
    assert sorted(i for share in shares for i in share) == list(range(key[0]))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(1, 9))
def test_pieces_cover_all_records_of_any_files_once(counts: list[int], workers: int) -> None:
    files = _files(counts)
    taken = [
        (piece.path, record)
        for worker in range(workers)
        for piece in plan_files(files, (worker, workers))
        for record in range(piece.skip, piece.skip + piece.records)
    ]
    assert sorted(taken) == [(str(file), record) for file, count in enumerate(counts) for record in range(count)]


def _files(counts: list[int]) -> RecordFiles:
    """Files that nobody opens; compressed, so that they are read from their beginning."""
    manifests = [
        Manifest(str(file), count, 20 * count, 4 * count, "gzip", "0" * 16, FeatureSpec(()))
        for file, count in enumerate(counts)
    ]
    return RecordFiles(tuple(manifest.file for manifest in manifests), tuple(manifests), FeatureSpec(()))


def test_a_worker_opens_only_what_it_needs(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfr_assets.records.frames.marks.SPAN", 100)
    pieces = plan_files(locate(written(table(30)).folder), (1, 2))
    assert [(Path(p.path).name[-14:], p.records, p.whole) for p in pieces] == [
        ("00001-of-00003", 5, False),
        ("00002-of-00003", 10, True),
    ]
    assert pieces[0].start > 0
    assert pieces[0].skip < 4  # from the mark before its first record on


def test_a_share_is_shuffled_anew_each_epoch_and_stays_the_same(written: Written) -> None:
    dataset = READERS["sharded"](locate(written(table(60)).folder), ReadOptions(8, shard=(1, 2), seed=5))
    epochs = [ids(dataset) for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(30, 60))
    assert epochs[0] != epochs[1]


def test_a_file_is_cut_without_its_index(written: Written) -> None:
    layout = written(table(30))
    index = index_path(layout.shard_path("train-00001-of-00003"))
    index.write_text("0 20\n")
    shares = [tfr_assets.read(layout.folder, files="shards", shard=(i, 2)) for i in range(2)]
    assert [i for share in shares for i in ids(share)] == list(range(30))
    index.unlink()
    assert [i for share in shares for i in ids(share)] == list(range(30))


@pytest.mark.parametrize("shard", [(1, 1), (-1, 2), (0, 0), (0.0, 1), 3, (True, 2)])
def test_a_share_that_cannot_be_is_refused(numbers: Layout, shard: tuple[int, int]) -> None:
    with pytest.raises(ConfigError, match=r"shard=.* must be \(index, count\)"):
        tfr_assets.read(numbers.folder, shard=shard)
