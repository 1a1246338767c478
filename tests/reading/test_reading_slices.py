"""Slices of a dataset, read as one: by all that reads, in their order, and what is said where one is missing."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfr_assets
from tfr_assets.errors import ConfigError, SchemaError, StaleError
from tfr_assets.layout import Layout, feature_spec_path, name_in
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.sources import Slices, save_slices

from .datasets import write_dataset

DAYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
READERS = [None, "columnar", "vectorized", "autotuned", "merged"]


def table(first: int, rows: int = 40) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + rows)), "word": [f"w{i}" for i in range(first, first + rows)]})


def add_slice(root: Path, key: str, rows: pa.Table, **settings: Any) -> Layout:
    """Writes a slice of the dataset `events`."""
    made = write_dataset(rows, root / "made", "events", inventory=key, **settings)
    slice_ = Layout.of("events", root).of_slice(key)
    slice_.folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made.folder, slice_.folder)
    save_slices(slice_.folder.parent, Slices(daily=DAYS[0]))
    return slice_


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sliced")
    for number, key in enumerate(DAYS):
        add_slice(folder, key, table(100 * number))
    return folder


def ids(*numbers: int) -> list[int]:
    return [100 * number + row for number in numbers for row in range(40)]


@pytest.mark.parametrize(
    ("slices", "numbers"),
    [
        (None, (0, 1, 2)),
        (("2026-03-01", "2026-03-02"), (0, 1)),
        (["2026-03-03", "2026-03-01"], (0, 2)),
        ("2026-03-02", (1,)),
        ("..2026-03-02", (0, 1)),
    ],
)
def test_slices_are_read_in_their_order(root: Path, slices: Any, numbers: tuple[int, ...]) -> None:
    with tfr_assets.open("events", root=root, slices=slices) as events:
        assert len(events) == 40 * len(numbers)
        assert [record["id"] for record in events] == ids(*numbers)
    batches = tfr_assets.batches("events", 32, root=root, slices=slices)
    assert np.concatenate([batch["id"] for batch in batches]).tolist() == ids(*numbers)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_reads_slices_as_tensorflow_reads_their_files(root: Path, reader: str | None) -> None:
    import tensorflow as tf

    chosen = ("2026-03-02", "2026-03-03")
    dataset = tfr_assets.read("events", 32, root=root, slices=chosen, reader=reader)
    found = [int(number) for batch in dataset for number in batch["id"].numpy()]
    files = [
        str(Layout.of("events", root).of_slice(key).shard_path(f"train-{n:05d}-of-00003"))
        for key in chosen
        for n in range(3)
    ]
    features = {"id": tf.io.FixedLenFeature((), tf.int64)}
    records = tf.data.TFRecordDataset(files)
    expected = [int(tf.io.parse_single_example(record, features)["id"]) for record in records]
    assert found == expected == ids(1, 2)


def test_merged_files_of_slices_are_read_where_asked_for(root: Path) -> None:
    events = tfr_assets.open("events", root=root, files="merged")
    assert [record["id"] for record in events] == ids(0, 1, 2)
    assert len(events.manifests) == 3


def test_shuffling_shares_and_states_go_over_all_slices(root: Path) -> None:
    events = tfr_assets.open("events", root=root, slices=(DAYS[0], DAYS[2]))
    shares = [
        np.concatenate([b["id"] for b in events.batches(16, shuffle="global", seed=3, shard=(worker, 2))])
        for worker in range(2)
    ]
    assert sorted(np.concatenate(shares).tolist()) == ids(0, 1, 2)
    assert abs(len(shares[0]) - len(shares[1])) <= 1
    iterator = tfr_assets.batches("events", 16, root=root)
    begun = [next(iterator)["id"] for _ in range(4)]
    again = tfr_assets.batches("events", 16, root=root)
    again.restore(iterator.state())
    assert np.concatenate([*begun, *(batch["id"] for batch in again)]).tolist() == ids(0, 1, 2)
    reopened = pickle.loads(pickle.dumps(events))
    assert reopened[75] == events[75] and reopened.fingerprint == events.fingerprint


def test_a_missing_slice_is_named_or_left_out(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(root / "events", copy / "events")
    shutil.rmtree(Layout.of("events", copy).of_slice(DAYS[1]).folder)
    with pytest.raises(StaleError, match=r"of dataset 'events', 1 of 3 slices are not there: 2026-03-02. Run `tfr run"):
        tfr_assets.open("events", root=copy, slices=(DAYS[0], DAYS[2]))
    events = tfr_assets.open("events", root=copy, slices=(DAYS[0], DAYS[2]), missing_slices="allow")
    assert [record["id"] for record in events] == ids(0, 2)
    assert len(tfr_assets.open("events", root=copy)) == 80  # all that are there
    with pytest.raises(StaleError, match="none of these slices of dataset 'events' is there"):
        tfr_assets.open("events", root=copy, slices=DAYS[1], missing_slices="allow")
    shard = Layout.of("events", copy).of_slice(DAYS[2]).shard_path("train-00001-of-00003")
    shard.unlink()
    tfr_assets.open("events", root=copy, slices=DAYS[2])  # its merged file
    with pytest.raises(StaleError, match="tfr run events --slices 2026-03-03` writes what is missing"):
        tfr_assets.open("events", root=copy, slices=DAYS[2], files="shards")


@pytest.mark.parametrize(
    ("slices", "says"),
    [
        ("2025-01-01", "there is no slice '2025-01-01'"),
        (("2026-03-03", "2026-03-01"), "2026-03-03 comes after 2026-03-01"),
        (3, "slices=3: give the first and the last one"),
        ([], "give the first and the last one"),
        (("a", "b", "c"), "give the first and the last one"),
    ],
)
def test_what_is_no_slice_is_refused(root: Path, slices: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        tfr_assets.batches("events", root=root, slices=slices)


def test_only_a_dataset_with_slices_has_them(root: Path, tmp_path: Path) -> None:
    write_dataset(table(0), tmp_path, "plain")
    with pytest.raises(ConfigError, match="dataset 'plain' has no slices; leave it out"):
        tfr_assets.open("plain", root=tmp_path, slices="last")
    with pytest.raises(ConfigError, match="missing_slices='no': use 'raise' or 'allow'"):
        tfr_assets.open("events", root=root, missing_slices="no")  # type: ignore[arg-type]
    of_one = Layout.of("events", root).of_slice(DAYS[1])
    assert len(tfr_assets.open(of_one.folder)) == len(tfr_assets.open(of_one.shards)) == 40
    with pytest.raises(ConfigError, match="is already chosen; leave it out"):
        tfr_assets.open(of_one.shards, slices=DAYS[1])


def test_slices_without_the_list_of_them_come_in_the_order_of_their_keys(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "events", tmp_path / "events")
    (tmp_path / "events" / "slices" / "slices.json").write_text("damaged")
    assert [r["id"] for r in tfr_assets.open("events", root=tmp_path, slices=(DAYS[1], DAYS[2]))] == ids(1, 2)


@pytest.mark.parametrize("reader", READERS)
def test_a_column_that_older_slices_lack_is_absent_there(tmp_path: Path, reader: str | None) -> None:
    add_slice(tmp_path, DAYS[0], table(0, 4))
    more = table(100, 3)
    more = more.append_column("price", pa.array([1.5, None, 2.5], pa.float32()))
    more = more.append_column("count", pa.array([7, 8, 9])).append_column("tags", pa.array([["a"], [], ["b", "c"]]))
    add_slice(tmp_path, DAYS[1], more)
    records = list(tfr_assets.open("events", root=tmp_path))
    assert records[0]["id"] == 0 and records[0]["count"] is None and np.isnan(records[0]["price"])
    assert list(records[0]["tags"]) == []
    assert records[6]["count"] == 9 and records[6]["price"] == 2.5 and list(records[6]["tags"]) == ["b", "c"]
    found = next(iter(tfr_assets.read("events", 16, root=tmp_path, reader=reader)))
    assert found["id"].numpy().tolist() == [0, 1, 2, 3, 100, 101, 102]
    assert found["count"].to_list() == [[], [], [], [], [7], [8], [9]]
    np.testing.assert_array_equal(found["price"].numpy(), [np.nan] * 4 + [1.5, np.nan, 2.5])
    assert found["tags"].to_list() == [[], [], [], [], [b"a"], [], [b"b", b"c"]]


def test_slices_with_and_without_nulls_are_read_together(tmp_path: Path) -> None:
    add_slice(tmp_path, DAYS[0], pa.table({"n": pa.array([1, 2])}))
    add_slice(tmp_path, DAYS[1], pa.table({"n": pa.array([None, 4])}))
    frame = next(iter(tfr_assets.batches("events", root=tmp_path, into="arrow")))
    assert frame["n"].to_pylist() == [1, 2, None, 4]


@pytest.mark.parametrize(
    ("column", "settings", "error", "says"),
    [
        (pa.array([1.5]), {}, SchemaError, "feature 'n' is int64 of shape () in the one, double of shape () in the"),
        (pa.array([[1, 2]]), {}, SchemaError, "feature 'n' is int64 of shape () in the one, list<"),
        (pa.array([1]), {"compression": "gzip"}, StaleError, "compression of the one is none, of the other gzip"),
        (
            pa.array([1]),
            {"options": FeatureOptions(names={"n": ["cat", "dog"]})},
            SchemaError,
            "int64 of shape (), of the classes cat, dog in the other",
        ),
    ],
)
def test_slices_that_differ_are_named(
    tmp_path: Path, column: pa.Array, settings: dict[str, Any], error: type[Exception], says: str
) -> None:
    add_slice(tmp_path, DAYS[0], pa.table({"n": pa.array([1])}))
    add_slice(tmp_path, DAYS[1], pa.table({"n": column}), **settings)
    with pytest.raises(error) as caught:
        tfr_assets.open("events", root=tmp_path)
    assert says in str(caught.value) and DAYS[0] in str(caught.value) and DAYS[1] in str(caught.value)
    assert len(tfr_assets.open("events", root=tmp_path, slices=DAYS[1])) == 1


@pytest.mark.parametrize("part", ["shards", "merged"])
def test_a_dataset_with_and_without_slices_at_once_is_refused(root: Path, tmp_path: Path, part: str) -> None:
    whole = write_dataset(table(0), tmp_path, "events")
    shutil.copytree(root / "events" / "slices", whole.folder / "slices")
    shutil.rmtree(whole.merged if part == "shards" else whole.shards)
    for what in ("events", whole.folder):
        with pytest.raises(StaleError, match=f"holds both slices and files of the whole dataset, in {part}: .* remove"):
            tfr_assets.open(what, root=tmp_path)
    with pytest.raises(StaleError, match="holds both slices and files of the whole dataset"):
        tfr_assets.open("events", root=tmp_path, slices="last")
    shutil.rmtree(whole.slices)
    assert len(tfr_assets.open("events", root=tmp_path)) == 40


def test_a_slice_that_is_half_written_or_lost_is_left_out_with_a_warning(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "events", tmp_path / "events")
    last = Layout.of("events", tmp_path).of_slice(DAYS[2])
    shutil.rmtree(last.merged)
    feature_spec_path(last.shards).unlink(missing_ok=True)
    last.shard_path("train-00001-of-00003").unlink()
    for _ in ("half written", "lost"):
        with pytest.warns(UserWarning, match="left out, because being written, or lost: 2026-03-03. `tfr run events"):
            assert [record["id"] for record in tfr_assets.open("events", root=tmp_path)] == ids(0, 1)
        allowed = tfr_assets.open("events", root=tmp_path, slices=(DAYS[1], DAYS[2]), missing_slices="allow")
        assert [record["id"] for record in allowed] == ids(1)
        with pytest.raises(StaleError, match="1 of 2 slices are not there: 2026-03-03"):
            tfr_assets.open("events", root=tmp_path, slices=(DAYS[1], DAYS[2]))
        shutil.rmtree(last.shards, ignore_errors=True)
        last.inventory.parent.mkdir(exist_ok=True)
        last.inventory.write_text("{}")


def test_a_folder_called_slices_is_not_always_one_of_slices(root: Path, tmp_path: Path) -> None:
    plain = write_dataset(table(0), tmp_path / "slices", "plain")
    assert name_in(plain.folder) == "plain"
    (plain.shards / "slices").mkdir()
    (plain.folder / "slices").mkdir()
    assert len(tfr_assets.open(plain.shards)) == len(tfr_assets.open(plain.folder)) == 40
    plain.shard_path("train-00001-of-00003").unlink()
    with pytest.raises(StaleError, match="`tfr run plain` writes what is missing"):
        tfr_assets.open("plain", root=tmp_path / "slices", files="shards")
