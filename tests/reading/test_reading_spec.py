"""What each kind of column comes back as, by the tables of `reading.tensors.spec`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tfr_assets.layout import Layout
from tfr_assets.reading.read import read
from tfr_assets.reading.tensors.spec import cast_tensors, element_spec
from tfr_assets.records.schema.feature_options import FeatureOptions

from .datasets import spec_of

Written = Callable[..., Layout]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]


def read_all(layout: Layout, rows: int) -> dict[str, Any]:
    (batch,) = read(layout.folder, batch_size=max(1, rows))
    return batch


def read_column(written: Written, array: pa.Array, **options: Any) -> Any:
    """Writes one column, reads it back as one batch, and holds it against the spec that is known without a file."""
    table, chosen = pa.table({"x": array}), FeatureOptions(**{name: {"x": value} for name, value in options.items()})
    tensor = read_all(written(table, options=chosen), len(array))["x"]
    assert element_spec(spec_of(table, chosen))["x"].is_compatible_with(tensor)
    return tensor


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_keep_type_and_extremes(written: Written, name: str) -> None:
    info = np.iinfo(name)
    tensor = read_column(written, pa.array([info.min, 0, info.max], pa.type_for_alias(name)))
    assert tensor.dtype == tf.as_dtype(name)
    assert tensor.numpy().tolist() == [info.min, 0, info.max]


def test_uint64_comes_back_as_int64(written: Written) -> None:
    tensor = read_column(written, pa.array([0, 2**63 - 1], pa.uint64()))
    assert (tensor.dtype, tensor.numpy().tolist()) == (tf.int64, [0, 2**63 - 1])


def test_bool_comes_back_as_bool(written: Written) -> None:
    tensor = read_column(written, pa.array([True, False, True]))
    assert (tensor.dtype, tensor.numpy().tolist()) == (tf.bool, [True, False, True])


@pytest.mark.parametrize("data_type", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_floats_come_back_as_float32(written: Written, data_type: pa.DataType) -> None:
    values = np.array([0.1, -0.0, np.inf, np.nan], data_type.to_pandas_dtype())
    tensor = read_column(written, pa.array(values, data_type))
    assert tensor.dtype == tf.float32
    np.testing.assert_array_equal(tensor.numpy(), values.astype(np.float32))


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_strings_come_back_as_their_bytes(written: Written, data_type: pa.DataType) -> None:
    tensor = read_column(written, pa.array(["", "é", "日本"], data_type))
    assert [value.decode() for value in tensor.numpy()] == ["", "é", "日本"]


def test_binary_comes_back_unchanged(written: Written) -> None:
    assert read_column(written, pa.array([b"\0\xff", b""])).numpy().tolist() == [b"\0\xff", b""]


@pytest.mark.parametrize("data_type", [pa.timestamp("us"), pa.date32(), pa.time64("ns"), pa.duration("ms")], ids=str)
def test_times_come_back_as_counts_of_their_unit(written: Written, data_type: pa.DataType) -> None:
    stored = pa.int32() if pa.types.is_date32(data_type) else pa.int64()
    tensor = read_column(written, pa.array([0, 1, 86_000], stored).cast(data_type))
    assert (tensor.dtype, tensor.numpy().tolist()) == (tf.int64, [0, 1, 86_000])


def test_decimals_come_back_as_text(written: Written) -> None:
    tensor = read_column(written, pa.array(["1.50", "-2.25"]).cast(pa.decimal128(5, 2)))
    assert tensor.numpy().tolist() == [b"1.50", b"-2.25"]


def test_dictionaries_come_back_as_their_values(written: Written) -> None:
    assert read_column(written, pa.array(["a", "b", "a"]).dictionary_encode()).numpy().tolist() == [b"a", b"b", b"a"]
    tensor = read_column(written, pa.array([7, 8], pa.int8()).dictionary_encode())
    assert (tensor.dtype, tensor.numpy().tolist()) == (tf.int8, [7, 8])


def test_structs_come_back_as_one_tensor_a_field(written: Written) -> None:
    table = pa.table({"s": pa.array([{"a": 1, "b": "x"}, None, {"a": 3, "b": None}])})
    batch = read_all(written(table), 3)
    assert batch["s/a"].to_list() == [[1], [], [3]]
    assert batch["s/b"].numpy().tolist() == [b"x", b"", b""]


def test_a_cast_decides_over_the_type(written: Written) -> None:
    tensor = read_column(written, pa.array([1, 2], pa.int64()), cast="int16")
    assert (tensor.dtype, tensor.numpy().tolist()) == (tf.int16, [1, 2])


def test_fixed_shapes_are_dense(written: Written) -> None:
    array = pa.FixedSizeListArray.from_arrays(pa.array(range(12), pa.uint8()), 6)
    flat = read_column(written, array)
    assert (flat.dtype, flat.shape) == (tf.uint8, (2, 6))
    shaped = read_column(written, array, shape=(3, 2))
    np.testing.assert_array_equal(shaped.numpy(), np.arange(12).reshape(2, 3, 2))


def test_tensors_keep_their_shape(written: Written) -> None:
    values = np.arange(8, dtype=np.int16).reshape(2, 2, 2)
    tensor = read_column(written, pa.FixedShapeTensorArray.from_numpy_ndarray(values))
    assert tensor.dtype == tf.int16
    np.testing.assert_array_equal(tensor.numpy(), values)


@pytest.mark.parametrize(
    ("values", "data_type", "dtype"),
    [
        ([[1, 2], [], None, [3]], pa.int32(), tf.int32),
        ([[True], [], None, [False, True]], pa.bool_(), tf.bool),
        ([[0.5], [], None, [1.5, 2.5]], pa.float64(), tf.float32),
        ([["a", ""], [], None, ["b"]], pa.string(), tf.string),
    ],
)
def test_lists_are_ragged_and_absent_ones_empty(
    written: Written, values: list[Any], data_type: pa.DataType, dtype: tf.DType
) -> None:
    tensor = read_column(written, pa.array(values, pa.list_(data_type)))
    assert (tensor.dtype, tensor.row_splits.dtype, tensor.shape) == (dtype, tf.int64, (4, None))
    expected = [[v.encode() if isinstance(v, str) else v for v in row or []] for row in values]
    assert tensor.to_list() == expected


def test_lists_of_arrays_are_ragged_with_dense_inner_sizes(written: Written) -> None:
    values = [[[[1, 2]], [[3, 4]]], [], None, [[[5, 6]]]]
    tensor = read_column(written, pa.array(values, pa.list_(pa.list_(pa.list_(pa.int16(), 2), 1))))
    assert (tensor.dtype, tensor.ragged_rank, tensor.shape) == (tf.int16, 1, (4, None, 1, 2))
    assert tensor.to_list() == [row or [] for row in values]


def test_absent_floats_are_nan_and_absent_bytes_empty(written: Written) -> None:
    floats = read_column(written, pa.array([1.0, None, 0.0]))
    np.testing.assert_array_equal(floats.numpy(), np.array([1, np.nan, 0], np.float32))
    assert read_column(written, pa.array(["a", None])).numpy().tolist() == [b"a", b""]


@pytest.mark.parametrize("data_type", [pa.int64(), pa.int8(), pa.bool_()], ids=str)
def test_absent_integers_are_no_zeros(written: Written, data_type: pa.DataType) -> None:
    tensor = read_column(written, pa.array([0, None, 1]).cast(data_type))
    assert tensor.dtype == tf.as_dtype(str(data_type))
    assert tensor.to_list() == [[0], [], [1]]


def test_a_fill_makes_every_kind_dense(written: Written) -> None:
    assert read_column(written, pa.array([5, None]), fill=-1).numpy().tolist() == [5, -1]
    assert read_column(written, pa.array([5.0, None]), fill=2).numpy().tolist() == [5, 2]
    assert read_column(written, pa.array(["a", None]), fill="né").numpy().tolist() == [b"a", "né".encode()]


@pytest.mark.parametrize(("data_type", "fill"), [(pa.uint8(), -1), (pa.bool_(), 2), (pa.int8(), 128)], ids=str)
def test_a_fill_beyond_the_narrow_type_keeps_int64(written: Written, data_type: pa.DataType, fill: int) -> None:
    tensor = read_column(written, pa.array([1, None]).cast(data_type), fill=fill)
    assert (tensor.dtype, tensor.numpy().tolist()) == (tf.int64, [1, fill])


def test_a_fill_within_the_narrow_type_keeps_that(written: Written) -> None:
    tensor = read_column(written, pa.array([True, None]), fill=0)
    assert (tensor.dtype, tensor.numpy().tolist()) == (tf.bool, [True, False])


def test_absent_arrays_are_filled_over_their_shape(written: Written) -> None:
    floats = read_column(written, pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)))
    np.testing.assert_array_equal(floats.numpy(), np.array([[1, 2], [np.nan, np.nan]], np.float32))
    strings = read_column(written, pa.array([["a", "b"], None], pa.list_(pa.string(), 2)))
    assert strings.numpy().tolist() == [[b"a", b"b"], [b"", b""]]
    filled = read_column(written, pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), fill=9)
    assert filled.numpy().tolist() == [[1, 2], [9, 9]]


def test_absent_integer_arrays_are_rows_of_none(written: Written) -> None:
    tensor = read_column(written, pa.array([[1, 2], None, [0, 0]], pa.list_(pa.int32(), 2)))
    assert (tensor.dtype, tensor.shape) == (tf.int32, (3, None, 2))
    assert tensor.to_list() == [[[1, 2]], [], [[0, 0]]]


def everything() -> pa.Table:
    return pa.table(
        {
            "int": pa.array(range(10), pa.int32()),
            "maybe": pa.array([None, *range(9)], pa.int64()),
            "float": pa.array([None, *np.arange(9.0)], pa.float64()),
            "text": pa.array([str(i) for i in range(10)]),
            "flag": pa.array([i % 2 == 0 for i in range(10)]),
            "list": pa.array([list(range(i)) for i in range(10)], pa.list_(pa.int8())),
            "pairs": pa.array([[[i, i]] * i for i in range(10)], pa.list_(pa.list_(pa.float32(), 2))),
            "array": pa.array([[i, i, i] for i in range(10)], pa.list_(pa.int64(), 3)),
        }
    )


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_the_element_spec_is_that_of_the_elements(written: Written, drop_remainder: bool) -> None:
    layout = written(everything())
    dataset = read(layout.folder, batch_size=4, drop_remainder=drop_remainder)
    assert dataset.element_spec == element_spec(spec_of(everything()), 4 if drop_remainder else None)
    batches = list(dataset)
    assert len(batches) == (2 if drop_remainder else 3)
    for batch in batches:
        for name, spec in dataset.element_spec.items():
            assert spec.is_compatible_with(batch[name]), name
            assert batch[name].dtype == spec.dtype


def test_what_needs_no_change_is_passed_on() -> None:
    spec = spec_of(pa.table({"a": pa.array([1]), "b": pa.array([1.0]), "c": pa.array(["x"])}))
    parsed = {"a": tf.constant([1], tf.int64), "b": tf.constant([1.0]), "c": tf.constant(["x"])}
    assert all(tensor is parsed[name] for name, tensor in cast_tensors(spec, parsed).items())
