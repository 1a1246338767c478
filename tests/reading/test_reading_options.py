"""Columns and epochs of `tfr_assets.read`, caches' files, and what is refused."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tensorflow as tf

import tfr_assets
from tfr_assets.errors import ConfigError, DamagedFile, StaleError, WriteError
from tfr_assets.layout import Layout
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.registry import READERS
from tfr_assets.records.schema.feature_options import FeatureOptions

from .datasets import write_dataset

Written = Callable[..., Layout]
TABLE = pa.table(
    {
        "id": pa.array(range(20), pa.int64()),
        "name": [f"n{i}" for i in range(20)],
        "deep": [[[i], []] for i in range(20)],
        "steps": [[i, i + 1] for i in range(20)],
    }
)


@pytest.mark.parametrize("reader", [name for name in READERS if name != "data_service"])
def test_every_reader_gives_only_the_chosen_columns(written: Written, reader: str) -> None:
    dataset = tfr_assets.read(written(TABLE).folder, 8, columns=["name", "id"], reader=reader)
    assert set(dataset.element_spec) == {"name", "id"}
    assert sorted(value for batch in dataset for value in batch["id"].numpy().tolist()) == list(range(20))


@pytest.mark.parametrize("sequence", [(), ("steps",)])
@pytest.mark.parametrize("columns", [["id"], ["deep", "name"], ["steps"], ["steps", "id"]])
def test_only_the_chosen_columns_come(written: Written, columns: list[str], sequence: tuple[str, ...]) -> None:
    layout = written(TABLE, options=FeatureOptions(sequence=sequence))
    for reader in ("vectorized", "naive"):
        dataset = tfr_assets.read(layout.folder, 8, columns=columns, reader=reader)
        assert set(dataset.element_spec) == set(columns)
        for name in columns:
            found = [value for batch in dataset for value in _values(batch[name])]
            source = TABLE[name].to_pylist()
            assert found == ([value.encode() for value in source] if name == "name" else source)


def _values(tensor: tf.Tensor | tf.RaggedTensor) -> list[Any]:
    return tensor.to_list() if isinstance(tensor, tf.RaggedTensor) else tensor.numpy().tolist()


def test_columns_that_are_not_there_are_refused(numbers: Layout) -> None:
    with pytest.raises(ConfigError, match=r"there is no column 'y'; there are x"):
        tfr_assets.read(numbers.folder, columns=["y"])
    for wrong in ([], "x"):
        with pytest.raises(ConfigError, match=r"columns=.* must be a list of some of x"):
            tfr_assets.read(numbers.folder, columns=wrong)


@pytest.mark.parametrize("reader", ["vectorized", "cache_memory", "cache_file"])
def test_epochs_follow_each_other(numbers: Layout, reader: str) -> None:
    twice = tfr_assets.read(numbers.folder, 4, repeat=2, reader=reader)
    assert [len(batch["x"]) for batch in twice] == [4, 4, 2] * 2
    for_ever = tfr_assets.read(numbers.folder, 4, repeat=None, reader=reader)
    assert for_ever.cardinality() == tf.data.INFINITE_CARDINALITY
    assert len(list(for_ever.take(7))) == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeat": 0}, "repeat=0 must be a positive number of epochs"),
        ({"shuffle": -1}, "shuffle=-1 must be a number of records"),
        ({"seed": "a"}, "seed='a' must be an integer"),
        ({"on_error": "ignore"}, "on_error='ignore': use 'raise', 'skip' or 'unchecked'"),
    ],
)
def test_what_cannot_be_is_refused(numbers: Layout, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tfr_assets.read(numbers.folder, **options)


def test_a_cache_goes_with_its_dataset_and_interrupted_ones_with_the_next(numbers: Layout, tmp_path: Path) -> None:
    files, caches = locate(numbers.folder), tmp_path / "caches"
    options = ReadOptions(4, cache_folder=caches)
    dataset = READERS["cache_file"](files, options)
    assert len(list(dataset)) == 3
    (folder,) = caches.iterdir()
    assert {path.name.partition(".")[0] for path in folder.iterdir()} == {"epoch"}
    (caches / "tfr-cache-left").mkdir()  # by a process that was killed: nobody holds it
    (caches / "tfr-cache-left" / "epoch.data").write_bytes(b"half")
    derived = READERS["cache_file"](files, options).map(lambda batch: batch["x"])
    assert len(list(caches.iterdir())) == 2
    del dataset
    assert folder not in caches.iterdir()
    assert len(list(derived)) == 3
    del derived
    assert list(caches.iterdir()) == []


def test_a_first_epoch_that_was_left_early_is_not_taken_for_a_whole_one(numbers: Layout) -> None:
    for reader in ("cache_memory", "cache_file"):
        dataset = READERS[reader](locate(numbers.folder), ReadOptions(2))
        next(iter(dataset))
        assert [len(batch["x"]) for batch in dataset] == [2] * 5


def test_a_folder_that_holds_no_cache_is_refused(numbers: Layout, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"cannot make a folder for the cache in .*; give another"):
        READERS["cache_file"](locate(numbers.folder), ReadOptions(cache_folder=tmp_path / "file"))


def test_merged_passes_over_damage_of_its_own_file(numbers: Layout) -> None:
    path = numbers.merged_path()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 3)
    with pytest.raises(DamagedFile, match=r"sample-train.tfrecord: \d+ bytes, its manifest says"):
        tfr_assets.read(numbers.folder, reader="merged")
    with pytest.warns(UserWarning, match="left out 1 of 10 records"):
        found = [
            int(x) for batch in tfr_assets.read(numbers.folder, reader="merged", on_error="skip") for x in batch["x"]
        ]
    assert found == list(range(9))


def test_merged_reads_the_file_that_the_shards_were_merged_into(numbers: Layout) -> None:
    shards = locate(numbers.folder, "shards")
    numbers.shard_path("train-00000-of-00003").write_bytes(b"")  # located before, not looked at any more
    assert sum(len(batch["x"]) for batch in READERS["merged"](shards, ReadOptions())) == 10
    numbers.merged_path().unlink()
    with pytest.raises(StaleError, match=r"there is no merged file .*; `tfr run sample` writes it"):
        READERS["merged"](shards, ReadOptions())


FEW_DESCRIPTORS = """
import os, resource, sys
import tensorflow as tf
import tfr_assets
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.registry import READERS
files = locate(sys.argv[1], "shards")
list(tf.data.Dataset.range(1))  # TensorFlow's own descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
for on_error in ("unchecked", "raise"):
    dataset = READERS["bounded"](files, ReadOptions(100, on_error=on_error))
    assert sum(len(batch["x"]) for batch in dataset) == 1200
print(len(os.listdir("/proc/self/fd")))
"""


def test_bounded_reads_hundreds_of_files_under_few_descriptors(tmp_path: Path) -> None:
    layout = write_dataset(pa.table({"x": pa.array(range(1200), pa.int64())}), tmp_path, shards=200)
    root = Path(tfr_assets.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", FEW_DESCRIPTORS, str(layout.folder)],
        cwd=root, timeout=120, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 16  # all files are closed again
