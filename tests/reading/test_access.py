"""`tfr_assets.open`: any record by number, as `batches` gives it, or an error that names the record."""

import contextlib
import multiprocessing
import os
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfr_assets
from tests.records.reference import examples
from tfr_assets.errors import ConfigError, DamagedFile, OutOfRange, StaleError
from tfr_assets.layout import Layout, index_path, manifest_path
from tfr_assets.reading.access.dataset import Dataset
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.schema.feature_options import FeatureOptions

from .datasets import write_dataset
from .test_reading_columnar import expected, joined, table

Written = Callable[..., Layout]


@pytest.fixture(scope="module")
def source() -> pa.Table:
    return table(100)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, source: pa.Table) -> Dataset:
    """A dataset that tests leave alone."""
    return tfr_assets.open(write_dataset(source, tmp_path_factory.mktemp("shared")).folder)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, source: pa.Table) -> Dataset:
    """The same records in memory; their files are gone."""
    folder = write_dataset(source, tmp_path_factory.mktemp("loaded"), compression="gzip").folder
    loaded = tfr_assets.open(folder, in_memory=True)
    shutil.rmtree(folder)
    return loaded


def flip(path: Path, record: int, byte: int = 12) -> int:
    """Flips a bit of a record; 12 is the first byte of its payload. Returns where its frame starts."""
    start = int(read_index(index_path(path))[record, 0])
    content = bytearray(path.read_bytes())
    content[start + byte] ^= 1
    path.write_bytes(content)
    return start


@given(wanted=st.lists(st.integers(-100, 99), max_size=150), in_memory=st.booleans())
@examples(60)
def test_records_come_in_the_order_asked(
    shared: Dataset, loaded: Dataset, source: pa.Table, wanted: list[int], in_memory: bool
) -> None:
    shared = loaded if in_memory else shared
    found = joined([shared.take(wanted)])
    np.testing.assert_equal(found, expected(source.take([i % 100 for i in wanted])) if wanted else found)
    assert shared.take(wanted, into="arrow").num_rows == len(wanted)
    assert len(shared.take(wanted, into="bytes")) == len(wanted)


@pytest.mark.parametrize("files", ["shards", "merged"])
@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_any_files_are_read_by_number(written: Written, source: pa.Table, compression: str, files: Any) -> None:
    folder = written(source, compression=compression).folder
    found = tfr_assets.open(folder, files=files).take([99, 0, 50, 50])
    np.testing.assert_equal(joined([found]), expected(source.take([99, 0, 50, 50])))


def test_a_dataset_tells_what_it_is(shared: Dataset) -> None:
    assert len(shared) == 100
    assert shared.splits == ["train"]
    assert shared.schema == shared.take([1, 2], into="arrow").schema
    assert shared.schema.names == list(shared.features.columns)
    assert repr(shared).startswith("<100 records of 3 files: deep, flag, id,")
    assert all(report.ok for report in shared.verify())


def test_splits_are_those_beside_each_other(tmp_path: Path) -> None:
    tfr_assets.write({"a": range(5)}, tmp_path / "x-train.tfrecord")
    tfr_assets.write({"a": range(3)}, tmp_path / "x-test.tfrecord")
    assert tfr_assets.open(tmp_path, split="test").splits == ["test", "train"]
    assert [len(tfr_assets.open(tmp_path, split=split)) for split in ("test", "train")] == [3, 5]


def test_single_records_are_dicts(shared: Dataset, source: pa.Table) -> None:
    rows = source.to_pylist()
    for found, row in [(shared[4], rows[4]), (shared[np.int64(-1)], rows[-1]), (shared[-5:][1], rows[-4])]:
        assert (found["id"], found["name"], found["maybe"]) == (row["id"], row["name"], row["maybe"])
        assert (found["flag"], list(found["tags"])) == (row["flag"], row["tags"])
        assert [list(inner) for inner in found["deep"]] == row["deep"]
        assert found["pairs"].tolist() == row["pairs"]
        assert list(found["words"]) == row["words"]
    assert [record["id"] for record in shared] == source["id"].to_pylist()
    assert [record["id"] for record in shared[7:1:-2]] == [7, 5, 3]
    assert sorted(shared[0]) == sorted(source.column_names)


def test_columns_are_chosen_when_opened_or_taken(shared: Dataset, written: Written, source: pa.Table) -> None:
    some = tfr_assets.open(written(source).folder, columns=["name", "id"])
    assert list(some[0]) == list(some.take([0])) == some.schema.names == ["name", "id"]
    assert list(next(some.batches())) == ["name", "id"]
    assert list(some.take([0], columns=["deep"])) == ["deep"]
    with pytest.raises(ConfigError, match="there is no column 'nane'; did you mean 'name'"):
        tfr_assets.open(written(source).folder, columns=["nane"])


@pytest.mark.parametrize("record", [100, -101, 10**12])
def test_records_out_of_range_are_refused(shared: Dataset, record: int) -> None:
    with pytest.raises(OutOfRange, match=f"there is no record {record}; the dataset has 100, from 0 on"):
        shared[record]
    with pytest.raises(IndexError):
        shared.take([0, record])


@pytest.mark.parametrize("records", ["ab", 1.5, [0.5], [[1]], None, [True]])
def test_what_is_no_number_of_a_record_is_refused(shared: Dataset, records: Any) -> None:
    with pytest.raises(ConfigError, match="must be"):
        shared.take(records)
    with pytest.raises(ConfigError, match="use 'raise' or 'skip'"):
        shared.take([0], on_error="pass")  # type: ignore[call-overload]
    choices = "'numpy', 'arrow', 'pandas', 'torch', 'jax', 'records' or 'bytes'"
    with pytest.raises(ConfigError, match=f"into='numppy': use {choices}"):
        shared.take([0], into="numppy")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="into='bytes': use 'numpy', 'arrow', 'pandas', 'torch', 'jax' or 'records'"):
        shared.batches(into="bytes")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="there is no column 'nope'"):
        shared.take([0], into="bytes", columns=["nope"])


def test_what_is_in_memory_is_checked_once_and_stays(written: Written, source: pa.Table) -> None:
    layout = written(source)
    path = layout.shard_path("train-00001-of-00003")
    flip(path, 3)
    damaged = tfr_assets.open(layout.folder, files="shards", in_memory=True)
    lost = damaged.manifests[0].records + 3
    with pytest.raises(DamagedFile, match=r"record 3 .*data CRC is wrong"):
        damaged[lost]
    found, missing = damaged.take([5, lost, lost, lost + 1], on_error="skip")
    assert (found["id"].tolist(), missing.tolist()) == ([5, lost + 1], [lost])
    path.write_bytes(b"")
    assert damaged[lost + 1]["id"] == lost + 1
    with pytest.warns(UserWarning, match="left out 1 of 100"):
        found = joined(damaged.batches(7, shuffle="global", columns=["id"], on_error="skip"))
    assert sorted(found["id"]) == [i for i in range(100) if i != lost]
    again = pickle.loads(pickle.dumps(damaged))  # which loads the files again, as they are now
    with pytest.raises(DamagedFile, match="truncated record"):
        again[lost + 1]


@pytest.mark.parametrize(
    ("byte", "kind", "at"), [(0, "length CRC is wrong", 0), (9, "length CRC", 0), (12, "data CRC is wrong", 12)]
)
def test_a_damaged_record_is_named(written: Written, source: pa.Table, byte: int, kind: str, at: int) -> None:
    layout = written(source)
    path = layout.shard_path("train-00001-of-00003")
    start = flip(path, 3, byte)
    damaged = tfr_assets.open(layout.folder, files="shards")
    first = sum(read.records for read in damaged.manifests[:1])
    assert damaged[first + 2]["id"] == first + 2
    with pytest.raises(DamagedFile, match=rf"00001-of-00003: record 3 at byte {start + at}: {kind}"):
        damaged.take([0, first + 3, 5])
    with pytest.raises(DamagedFile, match="record 3"):
        damaged.take([first + 3], into="bytes")
    found, missing = damaged.take([first + 3, 7, first + 3, 6], on_error="skip")
    assert (found["id"].tolist(), missing.tolist()) == ([7, 6], [first + 3])
    with pytest.warns(UserWarning, match=r"left out 1 of 100 records.*\n.*record 3") as warned:
        batches = damaged.batches(10, shuffle="global", on_error="skip")
        assert sum(len(batch["id"]) for batch in batches) == 99
    assert warned[0].filename == __file__
    assert batches.skipped.records == 1
    with pytest.raises(DamagedFile, match="record 3"):
        list(damaged.batches(10, shuffle="global"))
    assert [report.ok for report in damaged.verify()] == [True, False, True]


def test_records_that_were_cut_off_are_named(written: Written, source: pa.Table) -> None:
    layout = written(source)
    path = layout.shard_path("train-00002-of-00003")
    os.truncate(path, path.stat().st_size - 3)
    cut = tfr_assets.open(layout.folder, files="shards")
    assert cut[98]["id"] == 98
    with pytest.raises(DamagedFile, match=r"00002-of-00003: record .*: truncated record"):
        cut[99]
    assert cut.take([98, 99], on_error="skip")[1].tolist() == [99]


def test_a_record_of_another_spec_is_named(tmp_path: Path) -> None:
    tfr_assets.write({"a": [1, 2, 3]}, tmp_path / "x.tfrecord")
    tfr_assets.write({"a": ["x", "y", "z"]}, tmp_path / "y.tfrecord")
    other = tmp_path / "y.tfrecord"
    found = tfr_assets.open(tmp_path / "x.tfrecord")
    spec = tfr_assets.open(other)
    spec._files = type(spec._files)(spec._files.paths, spec._files.manifests, found.features)
    with pytest.raises(DamagedFile, match=r"y.tfrecord: record 1 at byte \d+: record does not fit the feature spec"):
        spec.take([1])
    assert spec.take([0, 1, 2], on_error="skip")[1].tolist() == [0, 1, 2]


@pytest.mark.parametrize("index", ["missing", "damaged", "of another file"])
def test_without_a_valid_index_the_file_is_looked_through(written: Written, source: pa.Table, index: str) -> None:
    layout = written(source)
    place, other = (index_path(layout.shard_path(f"train-0000{i}-of-00003")) for i in (0, 1))
    if index == "missing":
        place.unlink()
    else:
        place.write_bytes(b"0 1\n" if index == "damaged" else other.read_bytes())
    assert tfr_assets.open(layout.folder, files="shards").take([30, 2])["id"].tolist() == [30, 2]


def test_damage_in_a_file_without_index_is_told(written: Written, source: pa.Table) -> None:
    layout = written(source)
    path = layout.shard_path("train-00000-of-00003")
    flip(path, 3)
    index_path(path).unlink()
    with pytest.raises(
        DamagedFile, match=r"record 3 .*Without a valid index, damaged files are only read in their order"
    ):
        tfr_assets.open(layout.folder, files="shards")[0]


def test_a_damaged_compressed_file_is_told(written: Written, source: pa.Table) -> None:
    layout = written(source, compression="gzip")
    path = layout.shard_path("train-00000-of-00003")
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    with pytest.raises(DamagedFile, match="truncated compressed stream"):
        tfr_assets.open(layout.folder, files="shards")[0]


@pytest.mark.parametrize("how", ["renamed", "in place", "removed"])
def test_a_file_replaced_while_open_is_noticed(written: Written, source: pa.Table, how: str) -> None:
    layout = written(source)
    opened = tfr_assets.open(layout.folder, files="shards")
    path = layout.shard_path("train-00000-of-00003")
    assert opened[3]["id"] == 3
    if how == "renamed":
        other = path.with_name("other")
        shutil.copy(path, other)
        other.rename(path)
    elif how == "removed":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content)
        os.utime(path, ns=(1, 1))  # the clock of a file system may be slower than this test
    with pytest.raises(StaleError, match=r"00000-of-00003 is not the file.*Open the dataset again"):
        opened[3]


def test_a_file_replaced_before_its_first_record_is_refused(written: Written, source: pa.Table) -> None:
    layout = written(source)
    opened = tfr_assets.open(layout.folder, files="shards")
    assert opened[3]["id"] == 3
    for manifest in (layout.shards / "manifest").iterdir():
        manifest.write_bytes(manifest.read_bytes().replace(b"one", b"two"))
    assert opened[3]["id"] == 3  # of a file that is open already
    with pytest.raises(StaleError, match="00002-of-00003 is not the file"):
        opened.take([3, 99])


def test_a_pickled_dataset_is_the_same_or_refused(written: Written, source: pa.Table) -> None:
    layout = written(source)
    opened = tfr_assets.open(layout.folder, columns=["id"])
    again = pickle.loads(pickle.dumps(opened))
    assert (again.fingerprint, again.take([5, 4])["id"].tolist(), list(again[0])) == (
        opened.fingerprint, [5, 4], ["id"],
    )  # fmt: skip
    pickled = pickle.dumps(opened)
    assert len(pickled) < 1000
    os.truncate(opened._files.paths[0], 100)
    cut = pickle.loads(pickled)
    assert cut[99]["id"] == 99
    with pytest.raises(DamagedFile, match="truncated record"):
        cut[5]
    written(table(99))
    with pytest.raises(StaleError, match="are not the files of the pickled dataset"):
        pickle.loads(pickled)


def test_relative_paths_stay_those_of_the_folder_where_they_were_opened(
    written: Written, source: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(source).folder
    monkeypatch.chdir(folder.parent)
    opened, batches = tfr_assets.open(f"./{folder.name}"), tfr_assets.batches(f"./{folder.name}", 50)
    mixture, pickled = tfr_assets.mix({f"./{folder.name}": 1}), pickle.dumps(opened)
    monkeypatch.chdir("/")
    assert opened[3]["id"] == pickle.loads(pickled)[3]["id"] == 3
    assert [int(i) for batch in batches for i in batch["id"]] == list(range(100))
    assert sorted(int(i) for batch in mixture.batches(50) for i in batch["id"]) == list(range(100))


def _ids(opened: Dataset, records: list[int]) -> list[int]:
    return opened.take(records)["id"].tolist()


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_other_processes_read_what_was_opened_here(written: Written, source: pa.Table, how: Any) -> None:
    opened = tfr_assets.open(written(source).folder)
    assert opened[5]["id"] == 5
    wanted = [[i, 99 - i, 50] for i in range(8)]
    with multiprocessing.get_context(how).Pool(2) as pool:
        assert pool.starmap(_ids, [(opened, each) for each in wanted]) == wanted
    assert opened[6]["id"] == 6


def test_many_threads_read_at_once(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfr_assets.reading.access.gather._RUNS_A_THREAD", 3)
    monkeypatch.setattr("tfr_assets.records.frames.gather.GAP", 0)
    opened = tfr_assets.open(written(table(600), shards=5).folder, files="shards")
    wanted = [np.random.default_rng(seed).integers(0, 600, 100) for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for records, found in zip(wanted, pool.map(opened.take, wanted), strict=True):
            assert found["id"].tolist() == records.tolist()
    assert not [thread for thread in threading.enumerate() if thread.name == "tfr-gather"]


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_few_files_are_open_at_once(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfr_assets.reading.access.open_files._LEAST_OPEN", 2)
    monkeypatch.setattr("resource.getrlimit", lambda _: (8, 8))
    opened = tfr_assets.open(written(table(60), shards=20).folder, files="shards")
    before = open_files()
    for _ in range(3):
        assert opened.take(range(60))["id"].tolist() == list(range(60))
        assert open_files() <= before + 2
    opened.close()
    assert open_files() == before
    assert opened[59]["id"] == 59


_LIMITED = """
import json, os, resource, sys
import tfr_assets

folder, most = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
opened = tfr_assets.open(folder, files="shards")
opened.take([1])
held = [os.dup(0) for _ in range(int(sys.argv[3]))]
try:
    ids = [int(i) for batch in opened.batches(100, shuffle="global", workers=2) for i in batch["id"]]
    print(json.dumps(sorted(ids) == list(range(len(opened)))))
except tfr_assets.errors.ConfigError as error:
    print(error)
"""


def test_more_files_are_read_than_may_be_open(written: Written) -> None:
    folder = written(table(300), shards=300).folder

    def run(most: int, held: int) -> str:
        command = [sys.executable, "-c", _LIMITED, str(folder), str(most), str(held)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stdout.strip()

    assert run(150, 0) == "true"
    assert "Too many open files (the limit of this process is 150)" in run(150, 135)


def test_a_file_that_cannot_be_opened_is_not_said_to_be_replaced(written: Written, source: pa.Table) -> None:
    folder = written(source).folder
    tfr_assets.open(folder).take([0], into="bytes")  # so that all is loaded
    opened = tfr_assets.open(folder)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 50, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(0))
        for _ in range(2):  # the file cannot be opened; then it can, but its manifest cannot
            with pytest.raises(ConfigError, match=r"Too many open files .*`ulimit -n`"):
                opened.take([0], into="bytes")
            os.close(held.pop())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for each in held:
            os.close(each)
    assert len(opened.take([0], into="bytes")) == 1


_FULL = """
import resource, signal, sys
import tfr_assets

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
opened = tfr_assets.open(sys.argv[1])
most = opened.manifests[0].stream_bytes - 100
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    print(opened[0])
except tfr_assets.errors.WriteError as error:
    print(error)
"""


def test_a_full_temporary_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    tfr_assets.write({"id": range(3000)}, path, compression="gzip")
    run = subprocess.run([sys.executable, "-c", _FULL, str(path)], capture_output=True, text=True, check=True)
    assert f"{path} cannot be unpacked into the temporary folder {tempfile.gettempdir()}: " in run.stdout


def test_records_that_only_tensorflow_decodes_are_given_as_bytes(written: Written) -> None:
    import tensorflow as tf

    source = pa.table({"id": range(9), "x": [[0.5, 1.5]] * 9})
    opened = tfr_assets.open(written(source, options=FeatureOptions(tensor={"x": "serialized"})).folder)
    found = [tf.train.Example.FromString(record) for record in opened.take([5, 2], into="bytes")]
    assert [record.features.feature["id"].int64_list.value[0] for record in found] == [5, 2]
    with pytest.raises(ConfigError, match="only TensorFlow parses"):
        opened[0]


def test_an_empty_dataset_has_no_record(written: Written) -> None:
    empty = tfr_assets.open(written(table(0)).folder)
    assert (len(empty), list(empty), list(empty.batches(shuffle="global", epochs=None))) == (0, [], [])
    assert empty.take([])["id"].tolist() == []
    with pytest.raises(OutOfRange, match="there is no record 0"):
        empty[0]


def test_manifests_name_the_same_data(written: Written, source: pa.Table) -> None:
    layout = written(source)
    assert tfr_assets.open(layout.folder).fingerprint == tfr_assets.open(layout.shards).fingerprint
    assert manifest_path(layout.merged_path()).exists()
    assert tfr_assets.open(layout.folder).fingerprint != tfr_assets.open(layout.folder, files="merged").fingerprint
