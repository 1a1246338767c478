"""The reader `columnar` gives the batches that TensorFlow itself parses, and errors that say where."""

import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, reject
from hypothesis import strategies as st

import tfr_assets
from tests.records.reference import examples
from tests.records.tables import Table, tables
from tfr_assets.errors import SchemaError
from tfr_assets.layout import Layout, index_path
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.readers.parsing import parse_batch
from tfr_assets.reading.registry import READERS
from tfr_assets.reading.tensors.hand_over import HandedOver
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.schema.feature_options import FeatureOptions

from .datasets import write_dataset

Written = Callable[..., Layout]


def both(layout: Layout, **options: Any) -> tuple[tf.data.Dataset, tf.data.Dataset]:
    ours, theirs = (tfr_assets.read(layout.folder, reader=name, **options) for name in ("columnar", "vectorized"))
    return ours, theirs


def check(layout: Layout, **options: Any) -> None:
    ours, theirs = both(layout, **options)
    assert ours.element_spec == theirs.element_spec
    assert ours.cardinality() == theirs.cardinality()
    check_batches(list(ours), list(theirs))


def check_batches(ours: list[Any], theirs: list[Any]) -> None:
    for found, wanted in zip(ours, theirs, strict=True):
        assert list(found) == list(wanted)
        for name, tensor in wanted.items():
            assert found[name].dtype == tensor.dtype, name
            if isinstance(tensor, tf.RaggedTensor):
                assert [s.numpy().tolist() for s in found[name].nested_row_splits] == [
                    s.numpy().tolist() for s in tensor.nested_row_splits
                ], name
                np.testing.assert_array_equal(found[name].flat_values.numpy(), tensor.flat_values.numpy(), name)
            else:
                np.testing.assert_array_equal(found[name].numpy(), tensor.numpy(), name)


@pytest.fixture(
    scope="module", params=[0, 1 << 40], ids=["strings are made at once", "strings are copied"], autouse=True
)
def _strings(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfr_assets.reading.readers.columnar._LARGE_RECORD", request.param)
        yield


def everything(rows: int = 20) -> pa.Table:
    def nested(k: int) -> list[list[int]]:
        return [[j] * (j % 3) for j in range(k % 4)]

    return pa.table(
        {
            "int": pa.array(range(rows), pa.int32()),
            "other": pa.array(range(rows), pa.int32()),
            "long": pa.array([-(2**40) * i for i in range(rows)], pa.int64()),
            "maybe": pa.array([None, *range(rows - 1)], pa.int64()),
            "float": pa.array([None, *np.arange(rows - 1.0)], pa.float64()),
            "text": pa.array([str(i) * (i % 4) for i in range(rows)]),
            "blob": pa.array([None, *(bytes(range(256)) * (i % 3) for i in range(rows - 1))], pa.binary()),
            "flag": pa.array([i % 2 == 0 for i in range(rows)]),
            "list": pa.array([list(range(i % 9)) for i in range(rows)], pa.list_(pa.int8())),
            "texts": pa.array([None, *(["a", ""] * (i % 3) for i in range(rows - 1))], pa.list_(pa.string())),
            "pairs": pa.array([[[i, i]] * (i % 7) for i in range(rows)], pa.list_(pa.list_(pa.float32(), 2))),
            "array": pa.array([[i, i, i] for i in range(rows)], pa.list_(pa.int64(), 3)),
            "words": pa.array([[str(i), "é"] for i in range(rows)], pa.list_(pa.string(), 2)),
            "arrays": pa.array([None, *([i, i] for i in range(rows - 1))], pa.list_(pa.int64(), 2)),
            "deep": pa.array([nested(i) for i in range(rows)], pa.list_(pa.list_(pa.int16()))),
            "deeper": pa.array([[nested(i)] * (i % 2) for i in range(rows)], pa.list_(pa.list_(pa.list_(pa.uint8())))),
        }
    )


@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize("batch_size", [3, 8, 64])
def test_all_kinds_are_as_tensorflow_parses_them(written: Written, batch_size: int, drop_remainder: bool) -> None:
    check(written(everything()), batch_size=batch_size, drop_remainder=drop_remainder)


def test_text_without_bytes_crosses_as_well(written: Written) -> None:
    check(written(everything().select(["text", "texts", "words", "int"])), batch_size=6)


@pytest.mark.parametrize("values", [["", "", ""], [""], ["\0", "\1", ""], ["a"]])
def test_empty_strings_are_kept(written: Written, values: list[str]) -> None:
    check(written(pa.table({"t": values}), shards=1), batch_size=2)


@pytest.mark.parametrize("tensor", ["packed", "serialized"])
def test_tensors_are_as_tensorflow_parses_them(written: Written, tensor: str) -> None:
    source = pa.table(
        {"x": pa.array([[[1, 2]], [[3, 4], [5, 6]], None], pa.list_(pa.list_(pa.int64(), 2))), "n": range(3)}
    )
    check(written(source, options=FeatureOptions(tensor={"x": tensor})), batch_size=2)
    fixed = pa.table({"x": pa.array([[1.0, 2.0], [3.0, 4.0], None], pa.list_(pa.float64(), 2))})
    check(written(fixed, options=FeatureOptions(tensor={"x": "serialized"}), name="fixed"), batch_size=2)


@examples(12)
@given(table=tables())
def test_any_table_is_as_tensorflow_parses_it(tmp_path_factory: Any, table: Table) -> None:
    check(written_of(table, tmp_path_factory), batch_size=3)


def written_of(table: Table, tmp_path_factory: Any) -> Layout:
    try:
        return write_dataset(pa.Table.from_batches([table.batch]), tmp_path_factory.mktemp("d"), shards=2)
    except SchemaError:
        reject()  # a null among the values of a dictionary, which is not counted among the column's


@examples(4)
@given(table=tables(), lost=st.sets(st.integers(0, 7), max_size=3))
@pytest.mark.parametrize("on_error", ["raise", "skip", "unchecked"])
def test_whatever_is_lost_the_rest_is_as_tensorflow_parses_it(
    tmp_path_factory: Any, on_error: Any, table: Table, lost: set[int]
) -> None:
    layout = written_of(table, tmp_path_factory)
    files, options = locate(layout.shards), ReadOptions(batch_size=3, on_error=on_error)
    records = list(tf.data.TFRecordDataset(list(files.paths)).as_numpy_iterator())
    lost = {record for record in lost if record < len(records)}
    places = [(Path(path), *row) for path in files.paths for row in read_index(index_path(Path(path))).tolist()]
    for path, offset, size in (places[record] for record in lost):
        content = bytearray(path.read_bytes())
        content[offset + size - 1] ^= 1
        path.write_bytes(content)
    rest = [record for number, record in enumerate(records) if number not in lost]
    parse = parse_batch(files, options)
    wanted = [parse(tf.constant(rest[start : start + 3], tf.string)) for start in range(0, len(rest), 3)]
    for reader in ("columnar", "vectorized"):
        dataset = READERS[reader](files, options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which were left out
            if lost and on_error != "skip":
                with pytest.raises(tf.errors.OpError, match=r"corrupted record|data CRC is wrong"):
                    list(dataset)
            else:
                check_batches(list(dataset), wanted)


def test_damage_reaches_training_code_with_its_place(written: Written) -> None:
    layout = written(everything(90))
    path = layout.shard_path("train-00001-of-00003")
    offset = int(read_index(index_path(path))[7, 0])
    content = bytearray(path.read_bytes())
    content[offset + 14] ^= 1
    path.write_bytes(content)
    with pytest.raises(tf.errors.OpError, match=rf"{path}: record 7 at byte {offset + 12}: data CRC is wrong"):
        list(tfr_assets.read(layout.folder, 4, reader="columnar"))


@pytest.mark.parametrize("shuffle", [0, 100])
def test_a_file_that_goes_between_two_epochs_is_told_in_words(written: Written, shuffle: int) -> None:
    layout = written(everything())
    dataset = tfr_assets.read(layout.folder, 8, reader="columnar", shuffle=shuffle)
    assert sum(len(batch["int"]) for batch in dataset) == 20
    layout.shard_path("train-00001-of-00003").unlink()
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be read: No such file") as caught:
        list(dataset)
    assert "Traceback" not in str(caught.value)


def test_what_datasets_have_read_does_not_add_up(written: Written) -> None:
    layout = written(everything())

    def held() -> int:
        gc.collect()
        return sum(isinstance(each, HandedOver) for each in gc.get_objects())

    before = held()
    for _ in range(20):
        list(tfr_assets.read(layout.folder, 8, reader="columnar"))
    assert held() <= before + 3  # of the last one's files


def test_no_thread_outlives_an_iterator(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfr_assets.records.frames.marks.SPAN", 2000)
    iterator = iter(tfr_assets.read(written(everything(400)).folder, 2, reader="columnar"))
    next(iterator)
    assert any(thread.name == "tfr-decode" for thread in threading.enumerate())
    del iterator
    for thread in threading.enumerate():
        if thread.name == "tfr-decode":
            thread.join(10)
            assert not thread.is_alive()
