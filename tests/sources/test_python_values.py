"""Python's, NumPy's and TensorFlow's values in dicts: what column they become, against NumPy itself."""

import datetime
import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tfr_assets.errors import SourceError
from tfr_assets.sources import Source, read_rows, take_inventory
from tfr_assets.sources.tables.python_values import as_arrow, as_numpy


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([Color.RED, None, Color.BLUE], pa.array(["red", None, "blue"])),
        ([Size.LARGE, Size.SMALL], pa.array([2, 1])),
        ([[Color.RED], []], pa.array([["red"], []])),
        ([np.int8(1), None], pa.array([1, None], pa.int8())),
        ([np.float16(1.5)], pa.array([np.float16(1.5)])),
        ([np.bool_(True), False], pa.array([True, False])),
        ([np.str_("é"), np.bytes_(b"x").decode()], pa.array(["é", "x"])),
        ([np.array(3, np.uint16), None], pa.array([3, None], pa.int64())),
        ([np.datetime64("2020-01-02", "D")], pa.array([datetime.date(2020, 1, 2)])),
        ([np.longdouble(0.5)], pa.array([0.5])),
        ([np.array([1, 2], np.int16), np.array([3], np.int16)], pa.array([[1, 2], [3]], pa.list_(pa.int16()))),
        ([np.array([1, 2], ">i4"), np.array([3], ">i4")], pa.array([[1, 2], [3]], pa.list_(pa.int32()))),
        ([np.array(["a", "b"]), np.array([], "U1")], pa.array([["a", "b"], []])),
        ([[np.int8(1)], [np.int8(2), np.int8(3)]], pa.array([[1], [2, 3]], pa.list_(pa.int8()))),
        ([[[1], [2, 3]], [[]]], pa.array([[[1], [2, 3]], [[]]])),
        ([[np.array([1.5, 2.5])], []], pa.array([[[1.5, 2.5]], []])),
        ([{"a": Color.RED}, {"a": None}], pa.array([{"a": "red"}, {"a": None}])),
        ([{"x"}, frozenset()], pa.array([["x"], []])),
    ],
    ids=str,
)
def test_values_of_many_kinds(values: list[Any], expected: pa.Array) -> None:
    found = as_arrow([as_numpy(value) for value in values])
    assert found.type == expected.type
    assert found.to_pylist() == expected.to_pylist()


DTYPES = st.sampled_from(["bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64"])


@settings(deadline=None, max_examples=60)
@given(data=st.data(), dtype=DTYPES, count=st.integers(1, 5))
def test_arrays_of_one_shape_are_tensors(data: st.DataObject, dtype: str, count: int) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=3))
    arrays = [data.draw(hnp.arrays(dtype, shape)) for _ in range(count)]
    absent = data.draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
    given = [None if at in absent else array for at, array in enumerate(arrays)]
    found = as_arrow(given)
    assert isinstance(found.type, pa.FixedShapeTensorType) and found.type.shape == list(shape)
    assert [scalar.is_valid for scalar in found] == [at not in absent for at in range(count)]
    for scalar, array in zip(found, given, strict=True):
        if array is not None:
            values = np.array(scalar.value.values.to_numpy(zero_copy_only=False), dtype).reshape(shape)
            np.testing.assert_array_equal(values, array)
    again = as_arrow(given, found.type)
    assert again.storage.equals(found.storage) or np.isnan(np.concatenate(arrays, None).astype(float)).any()


@settings(deadline=None, max_examples=60)
@given(data=st.data(), dtype=DTYPES, count=st.integers(2, 5))
def test_arrays_of_varying_shapes_keep_values_and_shape(data: st.DataObject, dtype: str, count: int) -> None:
    shapes = [data.draw(hnp.array_shapes(min_dims=2, max_dims=3, max_side=3)) for _ in range(count - 1)]
    arrays = [data.draw(hnp.arrays(dtype, shape)) for shape in [*shapes, (*shapes[0], 2)]]
    for row, array in zip(as_arrow(arrays), arrays, strict=True):
        assert row["shape"].as_py() == list(array.shape)
        values = row["data"].values.to_numpy(zero_copy_only=False)
        np.testing.assert_array_equal(np.array(values, dtype).reshape(array.shape), array)


def test_tensors_of_tensorflow() -> None:
    import tensorflow as tf

    tensors = [tf.constant([[1.5, 2.5]], tf.float32), tf.constant([[3.5, 4.5]], tf.float32)]
    found = as_arrow([as_numpy(tensor) for tensor in tensors])
    assert found.type == pa.fixed_shape_tensor(pa.float32(), [1, 2])
    assert found.storage.to_pylist() == [[1.5, 2.5], [3.5, 4.5]]
    half = as_arrow([as_numpy(tf.constant([1.5], tf.bfloat16))])
    assert (half.type.value_type, half.storage.to_pylist()) == (pa.float32(), [[1.5]])
    assert as_arrow([as_numpy(tf.constant("text"))]).to_pylist() == [b"text"]
    ragged = tf.ragged.constant([[1, 2], [3]], tf.int32)
    assert as_arrow([as_numpy(ragged)]).to_pylist() == [[[1, 2], [3]]]


LATE = """
import numpy as np
def rows():
    for n in range(10_003):
        yield {{"x": {early} if n < 10_001 else {late}}}
table = list(rows())
"""


@pytest.mark.parametrize(
    ("early", "late", "expected"),
    [
        ("np.array([n, 1])", "np.array([n])", [[10_000, 1], [10_001], [10_002]]),
        (
            "np.array([n, 1])",
            "np.array([[n]])",
            [{"data": [10_000, 1], "shape": [2]}, *({"data": [n], "shape": [1, 1]} for n in (10_001, 10_002))],
        ),
        (
            "np.ones((1, 1), int)",
            "np.ones((2, 1), int)",
            [{"data": [1], "shape": [1, 1]}, *[{"data": [1, 1], "shape": [2, 1]}] * 2],
        ),
    ],
)
def test_shapes_that_vary_only_after_the_first_rows(
    module: Callable[[str], str], landing: Path, early: str, late: str, expected: list[Any]
) -> None:
    name = module(LATE.format(early=early, late=late))
    inventory = take_inventory(Source(callable=f"{name}:rows"), landing)
    batches = read_rows(inventory, 10_000, 10_003)
    assert pa.Table.from_batches(batches)["x"].to_pylist() == expected
    assert [path.name[:6] for path in landing.iterdir()] == ["landed"]
    with pytest.raises(SourceError, match=r"row 10001, column 'x': its shape is .*\.tolist\(\)"):
        take_inventory(Source(callable=f"{name}:table"), landing)


def test_what_cannot_be_read_as_an_array_is_told_with_its_row(module: Callable[[str], str], landing: Path) -> None:
    name = module(
        "class Odd:\n    def numpy(self):\n        raise RuntimeError('on another device')\n"
        "def rows():\n    yield {'x': 1}\n    yield {'x': Odd()}"
    )
    with pytest.raises(SourceError, match=r"row 1, column 'x': a value of type Odd cannot be read.*on another device"):
        take_inventory(Source(callable=f"{name}:rows"), landing)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, None, 2], pa.int8()),
        ([2**63], pa.uint64()),
        ([np.int64(3)], pa.int16()),
        ([1, 2], pa.float64()),
        ([[], [1], None], pa.list_(pa.int32())),
        ([{"a": 1}, {}, None], pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ([{"a": None}], pa.struct([("a", pa.int32())])),
        ([None, None], pa.int64()),
    ],
)
def test_values_take_the_type_of_those_before(values: list, type_: pa.DataType) -> None:
    assert as_arrow(values, type_).equals(pa.array(values, type_))
