"""Serialized tensors are byte for byte those of `tf.io.serialize_tensor`, whatever Arrow holds them as."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tfr_assets.errors import SchemaError
from tfr_assets.records.examples.tensor_proto import header
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions

from .encoding import encode
from .reference import examples
from .tables import Row

Arrays = Sequence[np.ndarray | None]
NUMBERS = ["bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))]
NUMBERS += ["float16", "float32", "float64"]
TYPES = {**{name: pa.from_numpy_dtype(name) for name in NUMBERS}, "string": pa.string(), "binary": pa.large_binary()}


def flat(arrays: Arrays, value_type: pa.DataType) -> pa.Array:
    there = [array.ravel() for array in arrays if array is not None]
    if pa.types.is_boolean(value_type) or not there or there[0].dtype == object:
        return pa.array([value for array in there for value in array.tolist()], value_type)
    return pa.array(np.concatenate(there), value_type)


def starts(sizes: Sequence[int]) -> pa.Array:
    return pa.array(np.cumsum([0, *sizes]), pa.int64())


def mask(arrays: Arrays) -> pa.Array:
    return pa.array([array is None for array in arrays], pa.bool_())


def as_structs(arrays: Arrays, value_type: pa.DataType) -> pa.Array:
    sizes = [() if array is None else array.shape for array in arrays]
    data = pa.LargeListArray.from_arrays(starts([0 if a is None else a.size for a in arrays]), flat(arrays, value_type))
    shapes = pa.array([list(size) for size in sizes], pa.list_(pa.int32()))
    return pa.StructArray.from_arrays([shapes, data], ["shape", "data"], mask=mask(arrays))


def as_nested_lists(arrays: Arrays, value_type: pa.DataType) -> pa.Array:
    rank = next((array.ndim for array in arrays if array is not None), 1)
    data_type = value_type
    for _ in range(rank):
        data_type = pa.list_(data_type)
    return pa.array([None if array is None else array.tolist() for array in arrays], data_type)


def as_fixed_lists(arrays: Arrays, value_type: pa.DataType) -> pa.Array:
    data_type = value_type
    for size in reversed(next(array.shape for array in arrays if array is not None)):
        data_type = pa.list_(data_type, size)
    return pa.array([None if array is None else array.tolist() for array in arrays], data_type)


def as_fixed_shape(arrays: Arrays, value_type: pa.DataType) -> pa.Array:
    shape = next(array.shape for array in arrays if array is not None)
    storage = pa.list_(value_type, int(np.prod(shape)))
    rows = [None if array is None else array.ravel().tolist() for array in arrays]
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(value_type, shape), pa.array(rows, storage))


def elements(name: str) -> st.SearchStrategy | None:
    if name == "float16":  # hypothesis' own draw of them discards too many
        return st.integers(0, 2**16 - 1).map(lambda bits: float(np.uint16(bits).view(np.float16)))
    if name == "string":
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
    return st.binary(max_size=200) if name == "binary" else None


@st.composite
def rows(draw: st.DrawFn, name: str, shapes: st.SearchStrategy) -> Arrays:
    """Draws some arrays, the first of which is there."""
    dtype = np.dtype(object if name in ("string", "binary") else name)
    arrays = [draw(npst.arrays(dtype, draw(shapes), elements=elements(name))) for _ in range(draw(st.integers(1, 4)))]
    return [array if n == 0 or draw(st.booleans()) else None for n, array in enumerate(arrays)]


def check(tf: Any, serialize: Callable[[Row], bytes], arrays: Arrays, column: pa.Array, name: str) -> None:
    """Holds a column's records against TensorFlow's bytes of the same tensors, also where it is a slice."""
    expected: list[Row] = []
    for array in arrays:
        values = array.tolist() if array is not None and array.dtype == object else array
        tensor = (
            None
            if array is None
            else tf.constant(values, tf.as_dtype("string" if name in ("string", "binary") else name), array.shape)
        )
        expected.append({} if tensor is None else {"x": ("bytes", [tf.io.serialize_tensor(tensor).numpy()])})
    batch = pa.record_batch({"x": column})
    assert encode(batch, tensor={"x": "serialized"}) == [serialize(row) for row in expected]
    assert encode(batch.slice(1), tensor={"x": "serialized"}) == [serialize(row) for row in expected[1:]]


@pytest.mark.parametrize("name", TYPES)
@examples(15)
@given(data=st.data())
def test_tensors_of_any_shape_equal_tensorflow(
    name: str, data: st.DataObject, tf: Any, serialize: Callable[[Row], bytes]
) -> None:
    arrays = data.draw(rows(name, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=8)))
    check(tf, serialize, arrays, as_structs(arrays, TYPES[name]), name)


@pytest.mark.parametrize("name", TYPES)
@examples(10)
@given(data=st.data())
def test_nested_lists_equal_tensorflow(
    name: str, data: st.DataObject, tf: Any, serialize: Callable[[Row], bytes]
) -> None:
    rank = data.draw(st.integers(1, 3))
    arrays = data.draw(rows(name, npst.array_shapes(min_dims=rank, max_dims=rank, max_side=5)))
    check(tf, serialize, arrays, as_nested_lists(arrays, TYPES[name]), name)


@pytest.mark.parametrize("build", [as_fixed_lists, as_fixed_shape])
@pytest.mark.parametrize("name", TYPES)
@examples(5)
@given(data=st.data())
def test_arrays_of_a_fixed_shape_equal_tensorflow(
    name: str, build: Callable[[Arrays, pa.DataType], pa.Array], data: st.DataObject, tf: Any, serialize: Callable
) -> None:
    shape = data.draw(npst.array_shapes(min_dims=1, max_dims=3, max_side=4))
    arrays = data.draw(rows(name, st.just(shape)))
    check(tf, serialize, arrays, build(arrays, TYPES[name]), name)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 16_383, 16_384, 3_000_000])
def test_every_width_of_a_size_equals_tensorflow(size: int, tf: Any, serialize: Callable[[Row], bytes]) -> None:
    array = np.arange(size).astype(np.uint8)
    check(tf, serialize, [array], as_structs([array], pa.uint8()), "uint8")


def test_every_bit_of_a_number_is_kept(tf: Any) -> None:
    wide = np.array([2**64 - 1, 2**63, 0], np.uint64)
    fine = np.array([0.1, 1e300, np.nan, -0.0, 5e-324])
    batch = pa.record_batch({"wide": pa.array([wide]), "fine": pa.array([fine])})
    payload = encode(batch, tensor={"wide": "serialized", "fine": "serialized"})[0]
    stored = tf.train.Example.FromString(payload).features.feature
    found = {
        name: tf.io.parse_tensor(stored[name].bytes_list.value[0], dtype).numpy()
        for name, dtype in (("wide", tf.uint64), ("fine", tf.float64))
    }
    assert found["wide"].tobytes() == wide.tobytes() and found["fine"].tobytes() == fine.tobytes()


@pytest.mark.parametrize(
    ("values", "data_type", "dtype", "stored"),
    [
        ([1, 2], pa.timestamp("us", "UTC"), "int64", [1, 2]),
        ([1, 2], pa.duration("ns"), "int64", [1, 2]),
        ([1, 2], pa.date32(), "int32", [1, 2]),
        ([1, 2], pa.time32("s"), "int32", [1, 2]),
    ],
    ids=str,
)
def test_temporal_values_are_counts_of_their_unit(
    values: list[int], data_type: pa.DataType, dtype: str, stored: list[int], tf: Any, serialize: Callable[[Row], bytes]
) -> None:
    storage = pa.int32() if data_type.bit_width == 32 else pa.int64()
    column = pa.ListArray.from_arrays([0, len(values)], pa.array(values, storage).view(data_type))
    expected = tf.io.serialize_tensor(tf.constant(stored, dtype)).numpy()
    assert encode(pa.record_batch({"x": column}), tensor={"x": "serialized"}) == [
        serialize({"x": ("bytes", [expected])})
    ]


def test_other_values_are_what_they_are_in_lists(tf: Any, serialize: Callable[[Row], bytes]) -> None:
    texts = tf.io.serialize_tensor(tf.constant(["1.50", "2.25"])).numpy()
    flags = tf.io.serialize_tensor(tf.constant([1, 0], tf.int8)).numpy()
    for column, expected in (
        (pa.array(["1.50", "2.25"]).cast(pa.decimal128(5, 2)), texts),
        (pa.array(["1.50", "2.25"]).dictionary_encode(), texts),
        (pa.array(["1.50", "2.25"], pa.string_view()), texts),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())), flags),
    ):
        batch = pa.record_batch({"x": pa.ListArray.from_arrays([0, 2], column)})
        assert encode(batch, tensor={"x": "serialized"}) == [serialize({"x": ("bytes", [expected])})], column.type


def test_a_cast_comes_before_serializing(tf: Any, serialize: Callable[[Row], bytes]) -> None:
    expected = serialize({"x": ("bytes", [tf.io.serialize_tensor(tf.constant([[1, 2]], tf.float16)).numpy()])})
    for column in (pa.array([[[1, 2]]]), as_structs([np.array([[1, 2]])], pa.int64())):
        assert encode(pa.record_batch({"x": column}), tensor={"x": "serialized"}, cast={"x": "float16"}) == [expected]


def test_a_shape_option_shapes_a_list(tf: Any, serialize: Callable[[Row], bytes]) -> None:
    expected = serialize({"x": ("bytes", [tf.io.serialize_tensor(np.arange(6).reshape(2, 3)).numpy()])})
    batch = pa.record_batch({"x": [[0, 1, 2, 3, 4, 5]]})
    assert encode(batch, tensor={"x": "serialized"}, shape={"x": (2, 3)}) == [expected]
    with pytest.raises(SchemaError, match=r"'x' has 1 values in row 0, but its shape \[2, 3\]"):
        encode(pa.record_batch({"x": [[1]]}), tensor={"x": "serialized"}, shape={"x": (2, 3)})


@pytest.mark.parametrize("way", ["packed", "serialized"])
@pytest.mark.parametrize("row", [[[1, 2], [3]], [[1], []], [[[1], [2]], [[3], [4, 5]]], [[[1]], [[2], [3]]]], ids=str)
def test_lists_that_are_not_rectangular_are_no_tensors(row: list, way: str) -> None:
    data_type = pa.array([row]).type
    batch = pa.record_batch({"x": pa.array([None, [], row], data_type)})
    with pytest.raises(SchemaError, match=r"column 'x' holds lists of different lengths in row 2.*features\.tensor"):
        encode(batch, tensor={"x": way})


def test_nested_lists_are_packed_with_their_shapes(serialize: Callable[[Row], bytes]) -> None:
    batch = pa.record_batch({"x": [[[1, 2, 3], [4, 5, 6]], None, [], [[], []]]})
    expected: list[Row] = [
        {"x": ("int64", [1, 2, 3, 4, 5, 6]), "x/shape": ("int64", [2, 3])},
        {},
        {"x": ("int64", []), "x/shape": ("int64", [0, 0])},
        {"x": ("int64", []), "x/shape": ("int64", [2, 0])},
    ]
    assert encode(batch, tensor={"x": "packed"}) == [serialize(row) for row in expected]
    assert encode(batch.slice(2), tensor={"x": "packed"}) == [serialize(row) for row in expected[2:]]


@pytest.mark.parametrize("way", ["packed", "serialized"])
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"data": [1, 2, 3], "shape": [2, 2]}, r"3 values in row 11, but its shape there is \[2, 2\]"),
        ({"data": [1, 2], "shape": []}, r"2 values in row 11, but its shape there is \[\]"),
        ({"data": [], "shape": []}, "0 values in row 11"),
        ({"data": [1], "shape": [-1, -1]}, r"\[-1, -1\]"),
        ({"data": [1, 2], "shape": None}, "its shape there is None"),
        ({"data": [1, 2], "shape": [2, None]}, "null inside a list"),
        ({"data": [1, None], "shape": [2]}, "null inside a list"),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_the_data(row: dict, problem: str, way: str) -> None:
    data_type = pa.struct([("data", pa.list_(pa.int32())), ("shape", pa.list_(pa.int32()))])
    column = pa.array([{"data": [1, 2], "shape": [1, 2]}, row, {"data": [], "shape": [0]}], data_type)
    with pytest.raises(SchemaError, match=problem) as caught:
        encode_from(column, 10, way)
    assert "'x'" in str(caught.value)


def encode_from(column: pa.Array, first_row: int, way: str) -> None:
    from tfr_assets.records.examples.encoder import ExampleEncoder

    batch = pa.record_batch({"x": column})
    spec = derive_spec(batch.schema, {}, FeatureOptions(tensor={"x": way}))
    list(ExampleEncoder(spec).encode(batch, first_row))


def test_the_header_is_what_stands_before_the_values(tf: Any) -> None:
    for shape in ((), (1,), (3, 200), (70_000,)):
        array = np.ones(shape, np.uint16)
        whole = tf.io.serialize_tensor(array).numpy()
        assert header(tf.uint16.as_datatype_enum, shape, array.nbytes) + array.tobytes() == whole
