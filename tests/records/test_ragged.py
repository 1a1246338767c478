"""Ragged columns against TensorFlow Datasets and `tf.RaggedTensor`; that bytes are TensorFlow's is in test_encode."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import SchemaError
from tfr_assets.records.examples.wire import decode_record

from .encoding import encode
from .reference import examples

ROWS = st.lists(st.none() | st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=4), min_size=1, max_size=5)


@examples(60)
@given(rows=ROWS, before=st.integers(0, 3))
def test_row_lengths_are_those_of_tensorflows_ragged_tensors(rows: list, before: int, tf: Any) -> None:
    column = pa.array([[[9]]] * before + rows, pa.list_(pa.list_(pa.int64()))).slice(before)
    for payload, row in zip(encode(pa.record_batch({"x": column})), rows, strict=True):
        found = decode_record(payload)
        if row is None:
            assert found == {}
            continue
        ragged = tf.ragged.constant(row, tf.int64, ragged_rank=1)
        assert found == {
            "x/ragged_flat_values": ("int64", ragged.flat_values.numpy().tolist()),
            "x/ragged_row_lengths_0": ("int64", ragged.row_lengths().numpy().tolist()),
        }


def test_features_are_those_of_tensorflow_datasets(tf: Any) -> None:
    serializer = pytest.importorskip("tensorflow_datasets.core.example_serializer", reason="needs tensorflow-datasets")
    features = pytest.importorskip("tensorflow_datasets.core.features")
    two = features.Sequence(features.Sequence(np.int64))
    three = features.Sequence(features.Sequence(features.Sequence(features.Tensor(shape=(2,), dtype=np.float32))))
    schema = features.FeaturesDict({"two": two, "three": three})
    row = {"two": [[1, 2], [], [3]], "three": [[[[1.0, 2.0]], []], [], [[[3.0, 4.0], [5.0, 6.0]]]]}
    theirs = serializer.ExampleSerializer(schema.get_serialized_info()).serialize_example(schema.encode_example(row))
    arrays = {
        "two": pa.array([row["two"]]),
        "three": pa.array([row["three"]], pa.list_(pa.list_(pa.list_(pa.list_(pa.float32(), 2))))),
    }
    (ours,) = encode(pa.record_batch(arrays))
    assert tf.train.Example.FromString(ours) == tf.train.Example.FromString(theirs)
    assert len(decode_record(ours) or ()) == 5


@pytest.mark.parametrize("row", [[[1], None], [[1, None]]], ids=str)
@pytest.mark.parametrize("outer", [pa.list_, pa.large_list, pa.list_view])
def test_a_null_in_an_inner_list_is_refused(row: list, outer: Any) -> None:
    batch = pa.record_batch({"x": pa.array([None, [[1]], row], outer(pa.list_(pa.int64())))})
    with pytest.raises(SchemaError, match="column 'x' holds a null inside a list"):
        encode(batch)
    assert len(encode(batch.slice(0, 2))) == 2


def test_a_null_list_hides_what_lies_under_it() -> None:
    inner = pa.array([[1], None, [2, None]], pa.list_(pa.int64()))
    column = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), inner, mask=pa.array([False, True]))
    assert encode(pa.record_batch({"x": column})) == encode(
        pa.record_batch({"x": pa.array([[[1]], None], pa.list_(pa.list_(pa.int64())))})
    )


def test_uint64_beyond_int64_is_refused() -> None:
    batch = pa.record_batch({"x": pa.array([[[1], [2**63]]], pa.list_(pa.list_(pa.uint64())))})
    with pytest.raises(SchemaError, match=f"'x' of type uint64 holds {2**63}"):
        encode(batch)
