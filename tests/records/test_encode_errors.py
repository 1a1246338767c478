"""Values that a tf.Example cannot hold: each refusal names column and row, and what to do."""

from typing import Any

import pyarrow as pa
import pytest

from tfr_assets.errors import SchemaError
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.schema.derive import derive_spec

from .encoding import encode


def refusal(batch: pa.RecordBatch, first_row: int = 0, **options: object) -> str:
    from tfr_assets.records.schema.feature_options import FeatureOptions

    chosen = FeatureOptions(**options)  # type: ignore[arg-type]
    encoder = ExampleEncoder(derive_spec(batch.schema, {}, chosen), chosen.cast)
    with pytest.raises(SchemaError) as caught:
        list(encoder.encode(batch, first_row))
    return str(caught.value)


def test_uint64_beyond_int64() -> None:
    message = refusal(pa.record_batch({"n": pa.array([1, 2**63], pa.uint64())}), 10)
    assert (
        "'n'" in message and "uint64" in message and str(2**63) in message and "row 10" in message and "Cast" in message
    )
    assert str(2**64 - 1) in refusal(pa.record_batch({"n": pa.array([[0], [1, 2**64 - 1]], pa.list_(pa.uint64()))}))
    assert len(encode(pa.record_batch({"n": pa.array([2**63], pa.uint64())}), cast={"n": "string"})) == 1


def test_uint64_beyond_int64_counts_only_where_it_is_visible() -> None:
    big = pa.array([[2**63], [1], [2**63]], pa.list_(pa.uint64()))
    assert encode(pa.record_batch({"n": big}).slice(1, 1)) == encode(pa.record_batch({"n": [[1]]}))
    hidden = pa.ListArray.from_arrays(big.offsets, big.values, mask=pa.array([True, False, True]))
    fixed = pa.FixedSizeListArray.from_arrays(big.values, 1, mask=pa.array([True, False, True]))
    expected = encode(pa.record_batch({"n": pa.array([None, [1], None], pa.list_(pa.uint64()))}))
    assert encode(pa.record_batch({"n": hidden})) == encode(pa.record_batch({"n": fixed})) == expected


@pytest.mark.parametrize(
    "data_type",
    [pa.list_(pa.int8()), pa.large_list(pa.string()), pa.list_(pa.float64(), 2), pa.list_view(pa.bool_())],
    ids=str,
)
def test_a_null_inside_a_list(data_type: pa.DataType) -> None:
    batch = pa.record_batch({"x": pa.array([[1, 0], None, [None, 1]], pa.list_(pa.int8())).cast(pa.list_(pa.int8()))})
    value = {pa.string(): "a", pa.bool_(): True}.get(data_type.value_type, 1)
    batch = pa.record_batch({"x": pa.array([[value, value], None, [None, value]], data_type)})
    message = refusal(batch, 7)
    assert "'x'" in message and "null inside a list" in message and "row 7" in message
    assert len(encode(batch.slice(0, 2))) == 2


@pytest.mark.parametrize("data_type", [pa.list_(pa.list_(pa.int8(), 2)), pa.list_(pa.list_(pa.int8(), 2), 2)], ids=str)
def test_a_null_inside_nested_lists(data_type: pa.DataType) -> None:
    for row in ([[1, 2], None], [[1, 2], [3, None]]):
        assert "null inside a list" in refusal(pa.record_batch({"x": pa.array([row], data_type)}))


def test_a_null_where_the_inventory_counted_none() -> None:
    batch = pa.record_batch({"x": [1, None], "s": pa.array([None, {"y": "a"}], pa.struct([("y", pa.string())]))})
    with pytest.raises(SchemaError, match=r"column 'x' has a null in row 1.*materialize raw again"):
        encode(batch, nulls={"x": 0})
    with pytest.raises(SchemaError, match=r"column 's/y' has a null in row 0"):
        encode(batch, nulls={"s/y": 0})


@pytest.mark.parametrize("data_type", [pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_view(pa.int8())], ids=str)
def test_a_list_of_another_length_than_the_shape(data_type: pa.DataType) -> None:
    batch = pa.record_batch({"x": pa.array([[1, 2, 3, 4], None, [5, 6, 7]], data_type)})
    message = refusal(batch, 5, shape={"x": (2, 2)})
    assert "'x'" in message and "3 values in row 7" in message and "[2, 2] asks for 4" in message
    assert len(encode(batch.slice(0, 2), shape={"x": (2, 2)})) == 2


def test_a_list_of_fixed_lists_of_another_length_than_the_shape() -> None:
    batch = pa.record_batch({"x": pa.array([[[1, 2], [3, 4]], [[5, 6]]], pa.list_(pa.list_(pa.int8(), 2)))})
    assert "row 1" in refusal(batch, shape={"x": (4,)})
    assert len(encode(batch.slice(0, 1), shape={"x": (4,)})) == 1


@pytest.mark.parametrize(
    ("values", "data_type", "cast"),
    [
        ([1.0, 1.5], pa.float64(), "int32"),
        ([300], pa.int64(), "int8"),
        (["1", "one"], pa.string(), "int64"),
        ([[1.5]], pa.list_(pa.float32()), "int64"),
        ([-1], pa.int64(), "uint64"),
        ([float("nan")], pa.float64(), "int64"),
        ([b"\xff"], pa.binary(), "string"),
    ],
)
def test_a_cast_that_would_lose_something(values: list[object], data_type: pa.DataType, cast: str) -> None:
    message = refusal(pa.record_batch({"x": pa.array(values, data_type)}), cast={"x": cast})
    assert "column 'x'" in message and str(data_type) in message and cast in message


def test_a_cast_that_does_not_exist() -> None:
    message = refusal(
        pa.record_batch({"x": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))}), cast={"x": "string"}
    )
    assert "column 'x'" in message and "map<string, int8>" in message


def test_a_batch_without_the_column() -> None:
    spec = derive_spec(pa.schema([("a", pa.int8()), ("s", pa.struct([("x", pa.int8())]))]), {})
    for batch in (
        pa.record_batch({"s": [{"x": 1}]}),
        pa.record_batch({"a": [1], "s": [{"y": 1}]}),
        pa.record_batch({"a": [1], "s": [1]}),
    ):
        with pytest.raises(SchemaError, match=r"column '(a|s/x)' is missing"):
            list(ExampleEncoder(spec).encode(batch))


@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_protobuf_itself_holds_no_integer_beyond_int64(value: int, tf: Any) -> None:
    with pytest.raises(ValueError, match="out of range"):
        tf.train.Int64List(value=[value])


@pytest.mark.parametrize(
    ("values", "row"), [([0, 1, 2], 2), ([1, None, -1, 5], 2), ([0, 200], 1), ([-(2**63)], 0)], ids=str
)
def test_an_integer_that_stands_for_no_class(values: list[int], row: int) -> None:
    batch = pa.record_batch({"label": pa.array(values, pa.int64())})
    message = refusal(batch, 40, names={"label": ("cat", "dog")})
    assert f"column 'label' is {values[row]} in row {40 + row}, but its 2 classes (cat, dog)" in message
    assert "features.names" in message


def test_integers_that_stand_for_classes_are_encoded_as_any() -> None:
    for values in ([0, 1, None], [None, None], []):
        for data_type in (pa.int64(), pa.uint8(), pa.dictionary(pa.int8(), pa.int32())):
            batch = pa.record_batch({"label": pa.array(values, data_type)})
            assert encode(batch, names={"label": ("cat", "dog")}) == encode(batch)
