"""tf.SequenceExamples are read in every way that tf.Examples are, with the tensors that TensorFlow parses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given

import tfr_assets
from tests.records.reference import examples
from tests.records.test_sequence import Sequences, sequences
from tfr_assets.errors import DamagedFile
from tfr_assets.layout import Layout, index_path
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.registry import default_reader
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.schema.feature_options import FeatureOptions

from .datasets import write_dataset
from .test_reading_columnar import joined
from .test_reading_columnar_dataset import check, check_batches

Written = Callable[..., Layout]
LISTS = ("frames", "labels", "words")


def table(rows: int = 30) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "frames": pa.array([[[i, j, 0.5] for j in range(i % 5)] for i in range(rows)], list_of(pa.float32(), 3)),
            "labels": pa.array([None if i % 4 == 0 else [*range(i % 6)] for i in range(rows)], pa.list_(pa.int16())),
            "words": pa.array([[["a" * j] * (j % 3) for j in range(i % 4)] for i in range(rows)], list_of(pa.string())),
            "title": pa.array([None if i % 7 == 0 else f"title {i}" for i in range(rows)]),
        }
    )


def list_of(value: pa.DataType, size: int = -1) -> pa.DataType:
    return pa.list_(pa.list_(value, size))


@pytest.fixture
def layout(written: Written) -> Layout:
    return written(table(), options=FeatureOptions(sequence=LISTS))


@examples(25)
@given(drawn=sequences())
def test_any_of_them_are_as_tensorflow_parses_them(tmp_path_factory: Any, drawn: Sequences) -> None:
    source = pa.Table.from_batches([drawn.batch])
    options = FeatureOptions(sequence=drawn.names)
    check(write_dataset(source, tmp_path_factory.mktemp("d"), shards=2, options=options), batch_size=4)


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_the_default_reads_them(layout: Layout, drop_remainder: bool) -> None:
    assert default_reader(locate(layout.folder)) == "columnar"
    options: dict[str, Any] = {"batch_size": 7, "drop_remainder": drop_remainder}
    for chosen in ({}, {"shard": (1, 3)}, {"columns": ["words", "id"]}, {"columns": ["labels"]}):
        ours = tfr_assets.read(layout.folder, **options, **chosen)
        theirs = tfr_assets.read(layout.folder, reader="vectorized", **options, **chosen)
        assert ours.element_spec == theirs.element_spec
        check_batches(list(ours), list(theirs))


@pytest.mark.parametrize("reader", ["columnar", "resumable"])
def test_shuffled_each_comes_once_and_whole(layout: Layout, reader: str) -> None:
    (wanted,) = tfr_assets.read(layout.folder, 100, reader="vectorized")
    found = list(tfr_assets.read(layout.folder, 7, reader=reader, shuffle=20, seed=1))
    order = tf.concat([batch["id"] for batch in found], 0)
    assert order.numpy().tolist() != list(range(30))
    for name in ("frames", "labels", "words"):
        assert tf.concat([batch[name] for batch in found], 0).to_list() == tf.gather(wanted[name], order).to_list()


def test_batches_are_columns_of_steps(layout: Layout) -> None:
    found, rows = joined(tfr_assets.batches(layout.folder, 7)), table().to_pylist()
    assert found["frames"] == [row["frames"] for row in rows]
    assert found["labels"] == [row["labels"] or [] for row in rows]
    assert found["words"] == [[[word.encode() for word in step] for step in row["words"]] for row in rows]
    (batch,) = tfr_assets.batches(layout.folder, 100, into="arrow")
    assert batch.schema.field("words").type == pa.large_list(pa.large_list(pa.large_string()))
    assert batch.schema.field("frames").type == pa.large_list(pa.list_(pa.float32(), 3))
    assert batch["words"].to_pylist() == [row["words"] for row in rows]
    (frame,) = tfr_assets.batches(layout.folder, 100, into="pandas", columns=["frames", "id"])
    assert np.stack(frame["frames"][3]).tolist() == rows[3]["frames"]


def test_records_are_taken_by_number(layout: Layout) -> None:
    opened, rows = tfr_assets.open(layout.folder), table().to_pylist()
    assert opened[8]["id"] == 8 and opened[7]["title"] is None
    assert opened[8]["frames"].tolist() == rows[8]["frames"]
    taken = opened.take([22, 3, 3], into="arrow").to_pylist()
    assert [row["words"] for row in taken] == [rows[i]["words"] for i in (22, 3, 3)]
    some = [each for batch in opened.batches(4, shuffle="global", into="records") for each in batch]
    assert sorted(each["id"] for each in some) == [*range(30)]
    assert all(each["labels"].tolist() == (rows[each["id"]]["labels"] or []) for each in some)
    assert sum(1 for _ in opened) == len(opened) == 30


def test_damage_is_told_with_its_place_or_left_out(layout: Layout) -> None:
    path = layout.shard_path("train-00001-of-00003")
    offset = int(read_index(index_path(path))[3, 0])
    content = bytearray(path.read_bytes())
    content[offset + 14] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=rf"{path}: record 3 at byte {offset + 12}: data CRC is wrong"):
        list(tfr_assets.batches(layout.folder))
    with pytest.warns(UserWarning, match="1 of 30 records"):
        found = joined(tfr_assets.batches(layout.folder, on_error="skip"))
    assert found["id"] == [i for i in range(30) if i != 13]
