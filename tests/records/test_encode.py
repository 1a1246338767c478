"""Encoded bytes are the bytes that TensorFlow's own classes give, for every supported type and every shape of table."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import SchemaError
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.schema.derive import derive_spec

from .encoding import encode
from .reference import examples
from .tables import SORTS, Row, Sort, Table, tables

Serialize = Callable[[Row], bytes]


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: sort.name)
@examples(12)
@given(data=st.data())
def test_a_column_of_each_type_equals_tensorflow(sort: Sort, data: st.DataObject, serialize: Serialize) -> None:
    table = data.draw(tables({"x": sort}))
    features = {f.name: (f.kind.value, f.shape) for f in derive_spec(table.batch.schema, {}).features}
    if sort.entries is None:
        assert features == {"x": (sort.kind, sort.shape)}
    assert all(features[name][0] == kind for row in table.rows for name, (kind, _) in row.items())
    assert encode(table.batch) == [serialize(row) for row in table.rows]


@examples(300)
@given(table=tables())
def test_a_table_of_any_columns_equals_tensorflow(table: Table, serialize: Serialize) -> None:
    assert encode(table.batch) == [serialize(row) for row in table.rows]


@examples(60)
@given(table=tables(max_rows=30), cuts=st.lists(st.integers(0, 30), max_size=5))
def test_how_rows_are_cut_into_batches_does_not_change_bytes(table: Table, cuts: list[int]) -> None:
    edges = sorted([0, table.batch.num_rows, *(min(cut, table.batch.num_rows) for cut in cuts)])
    parts = [table.batch.slice(a, b - a) for a, b in pairwise(edges)]  # some are empty
    assert encode(*parts) == encode(table.batch)


def test_a_written_file_equals_that_of_tensorflows_writer(tf: Any, serialize: Serialize, tmp_path: Path) -> None:
    batch = pa.record_batch({"n": [1, None, -3], "t": ["a", "", None], "f": [[0.5], [], None]})
    rows: list[Row] = [
        {"n": ("int64", [1]), "t": ("bytes", [b"a"]), "f": ("float32", [0.5])},
        {"t": ("bytes", [b""]), "f": ("float32", [])},
        {"n": ("int64", [-3])},
    ]
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for row in rows:
            writer.write(serialize(row))
    write_file(tmp_path / "ours", ExampleEncoder(derive_spec(batch.schema, {})).encode(batch))
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_parse_example_reads_the_values_back(tf: Any, tmp_path: Path) -> None:
    batch = pa.record_batch(
        {
            "id": pa.array([1, -2, 2**63 - 1]),
            "price": pa.array([0.1, None, float("-inf")]),
            "name": pa.array(["é", None, ""]),
            "sizes": pa.array([[1, 2], [], None], pa.list_(pa.int16())),
            "image": pa.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], pa.list_(pa.uint8(), 4)),
            "where": pa.array([{"city": "Rome"}, None, {"city": None}], pa.struct([("city", pa.string())])),
        }
    )
    options = {"image": (2, 2)}
    write_file(tmp_path / "file", _frames(batch, shape=options))
    spec = {
        "id": tf.io.FixedLenFeature([], tf.int64),
        "price": tf.io.FixedLenFeature([], tf.float32, default_value=7.0),
        "name": tf.io.FixedLenFeature([], tf.string, default_value="?"),
        "sizes": tf.io.RaggedFeature(tf.int64),
        "image": tf.io.FixedLenFeature([2, 2], tf.int64),
        "where/city": tf.io.FixedLenFeature([], tf.string, default_value="nowhere"),
    }
    dataset = tf.data.TFRecordDataset(str(tmp_path / "file")).batch(3)
    parsed = tf.io.parse_example(next(iter(dataset)), spec)
    assert parsed["id"].numpy().tolist() == [1, -2, 2**63 - 1]
    assert parsed["price"].numpy().tolist() == [np.float32(0.1), 7.0, float("-inf")]
    assert parsed["name"].numpy().tolist() == ["é".encode(), b"?", b""]
    assert parsed["sizes"].to_list() == [[1, 2], [], []]
    assert parsed["image"].numpy().tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]
    assert parsed["where/city"].numpy().tolist() == [b"Rome", b"nowhere", b"nowhere"]


@pytest.mark.parametrize("edge", [2**7, 2**14, 2**21])
def test_the_size_of_features_may_change_its_width_between_rows(edge: int, serialize: Serialize) -> None:
    sizes = [max(0, edge + d) for d in range(-24, 4)]
    random.Random(edge).shuffle(sizes)
    values = [b"\xab" * size for size in [0, edge, 0, *sizes, 2 * edge, 1]]
    batch = pa.record_batch({"x": pa.array(values, pa.large_binary()), "n": list(range(len(values)))})
    expected = [serialize({"x": ("bytes", [v]), "n": ("int64", [n])}) for n, v in enumerate(values)]
    assert encode(batch) == expected
    lengths = {len(payload) for payload in expected}
    assert any(n - 2 < edge for n in lengths) and any(n - 2 >= edge for n in lengths)


@pytest.mark.parametrize("key", [1, 60, 118, 119, 120, 121, 122, 127, 128, 129, 16_383, 16_384, 70_000])
def test_keys_of_any_length_equal_tensorflow(key: int, serialize: Serialize) -> None:
    name = "k" * key
    for kind, value in (("int64", -1), ("float32", 1.5), ("bytes", b"v")):
        batch = pa.record_batch({name: [value, None], "other": [1, 2]})
        rows: list[Row] = [{name: (kind, [value]), "other": ("int64", [1])}, {"other": ("int64", [2])}]
        assert encode(batch) == [serialize(row) for row in rows]


@pytest.mark.parametrize("kind", ["string", "list"])
def test_every_length_of_a_value_equals_tensorflow(kind: str, serialize: Serialize) -> None:
    lengths = [*range(300), *range(16_370, 16_390)]
    values = [bytes([n % 256]) * n for n in lengths]
    column = pa.array(values if kind == "string" else [[value, b"", value] for value in values])
    expected = [serialize({"key": ("bytes", [v] if kind == "string" else [v, b"", v])}) for v in values]
    assert encode(pa.record_batch({"key": column})) == expected


def test_varints_of_every_size_equal_tensorflow(serialize: Serialize) -> None:
    edges = {sign * 2**n + d for n in range(64) for d in (-1, 0, 1) for sign in (1, -1)}
    values = sorted(v for v in edges if -(2**63) <= v < 2**63)
    assert encode(pa.record_batch({"n": values})) == [serialize({"n": ("int64", [v])}) for v in values]
    assert encode(pa.record_batch({"n": [values, values[::-1]]})) == [
        serialize({"n": ("int64", vs)}) for vs in (values, values[::-1])
    ]


def test_keys_are_sorted_by_their_bytes(serialize: Serialize) -> None:
    names = ["😀", "\uffee", "é", "z", "Z", "aa", "ab", "字", "\x7f", "ÿ"]
    batch = pa.record_batch({name: [n] for n, name in enumerate(names)})
    spec = derive_spec(batch.schema, {})
    assert [feature.name for feature in spec.features] == sorted(names, key=str.encode)
    assert encode(batch) == [serialize({name: ("int64", [n]) for n, name in enumerate(names)})]


def test_a_key_comes_behind_those_that_it_begins(serialize: Serialize) -> None:
    # protobuf for Python (upb) sorts so, unlike protobuf for C++; Python is where TensorFlow's users serialize
    names = ["a", "a\0", "aa", "ab", "b", "é", "é\u0301"]
    batch = pa.record_batch({name: [n] for n, name in enumerate(names)})
    assert encode(batch) == [serialize({name: ("int64", [n]) for n, name in enumerate(names)})]


def test_a_row_of_nulls_only_is_an_example_without_features(serialize: Serialize) -> None:
    batch = pa.record_batch({"a": [None, 1], "b": pa.array([None, "x"])})
    assert encode(batch)[0] == serialize({}) == b"\x0a\x00"


def test_an_empty_list_is_present_and_a_null_is_absent(serialize: Serialize) -> None:
    for kind, item in (("int64", pa.int8()), ("float32", pa.float32()), ("bytes", pa.string())):
        batch = pa.record_batch({"x": pa.array([[], None], pa.list_(item))})
        assert encode(batch) == [serialize({"x": (kind, [])}), serialize({})]


def test_a_float_beyond_float32_becomes_infinite(tf: Any) -> None:
    payloads = encode(pa.record_batch({"x": [1e39, -1e39, 3.4e38, float("nan")]}))
    found = [tf.train.Example.FromString(payload).features.feature["x"].float_list.value[0] for payload in payloads]
    assert found[:3] == [float("inf"), float("-inf"), float(np.float32(3.4e38))]
    assert np.isnan(found[3])


def test_more_rows_than_one_step_takes(serialize: Serialize) -> None:
    rows = 10_000
    names = [None if n % 7 == 0 else f"row {n}" * (n % 5) for n in range(rows)]
    batch = pa.record_batch({"n": range(rows), "t": names})
    expected = []
    for n, name in enumerate(names):
        row: Row = {"n": ("int64", [n])}
        if name is not None:
            row["t"] = ("bytes", [name.encode()])
        expected.append(serialize(row))
    assert encode(batch) == expected


def test_rows_of_very_different_sizes_share_a_batch(serialize: Serialize) -> None:
    values = [b"x" * (3_000_000 if n in (5, 900) else n % 50) for n in range(1_000)]
    expected = [serialize({"x": ("bytes", [v])}) for v in values]
    assert encode(pa.record_batch({"x": values})) == expected


def test_an_encoder_is_used_again_for_later_batches(serialize: Serialize) -> None:
    small, large = pa.record_batch({"x": ["a"]}), pa.record_batch({"x": ["b" * 2_000_000, "c"]})
    expected = [serialize({"x": ("bytes", [v.encode()])}) for v in ("a", "b" * 2_000_000, "c", "a")]
    assert encode(small, large, small) == expected


def test_an_empty_batch_gives_nothing() -> None:
    batch = pa.record_batch({"x": pa.array([], pa.int64())})
    assert encode(batch) == []
    assert encode(batch, pa.record_batch({"x": [1]}), batch) == encode(pa.record_batch({"x": [1]}))


def test_columns_may_come_in_another_order_than_the_schemas(serialize: Serialize) -> None:
    first = pa.record_batch({"a": [1], "b": ["x"], "c": [0.5]})
    spec = derive_spec(first.schema, {})
    payload = b"".join(bytes(f.data) for f in ExampleEncoder(spec).encode(first.select(["c", "a", "b"])))
    assert payload[12:-4] == serialize({"a": ("int64", [1]), "b": ("bytes", [b"x"]), "c": ("float32", [0.5])})


def test_rename_cast_and_drop_change_names_values_and_columns(serialize: Serialize) -> None:
    batch = pa.record_batch({"a": [1, 2], "b": ["3", "4"], "c": [None, 0.5], "d": [[1.0], [2.0, 3.0]]})
    found = encode(batch, rename={"a": "z", "b": "a"}, cast={"b": "int16", "d": "int32"}, drop=("c",))
    assert found == [
        serialize({"z": ("int64", [1]), "a": ("int64", [3]), "d": ("int64", [1])}),
        serialize({"z": ("int64", [2]), "a": ("int64", [4]), "d": ("int64", [2, 3])}),
    ]


def test_a_column_without_values_takes_the_type_it_is_cast_to() -> None:
    assert encode(pa.record_batch({"x": pa.nulls(2), "y": [1, 2]}), cast={"x": "string"}) == encode(
        pa.record_batch({"y": [1, 2]})
    )


def test_a_cast_reaches_the_values_of_lists_and_dictionaries() -> None:
    numbers = pa.record_batch({"x": pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)), "y": [1, 2]})
    texts = pa.record_batch(
        {
            "x": pa.array([["1", "2"], ["3", "4"]], pa.list_(pa.string(), 2)),
            "y": pa.array(["1", "2"]).dictionary_encode(),
        }
    )
    assert encode(texts, cast={"x": "int64", "y": "int64"}) == encode(numbers)


def test_names_with_slashes_are_told_from_fields_of_structs(serialize: Serialize) -> None:
    inner = pa.StructArray.from_arrays([pa.array([3]), pa.array([4])], ["d", "d/e"])
    batch = pa.record_batch({"a/b": [1], "a": pa.StructArray.from_arrays([pa.array([2]), inner], ["c", "a/b"])})
    expected: Row = {
        "a/b": ("int64", [1]),
        "a/c": ("int64", [2]),
        "a/a/b/d": ("int64", [3]),
        "a/a/b/d/e": ("int64", [4]),
    }
    assert encode(batch) == [serialize(expected)]


def test_a_dictionary_of_lists_keeps_their_shape(serialize: Serialize) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), pa.array([[1], [2, 3]]))
    batch = pa.record_batch({"x": column})
    assert derive_spec(batch.schema, {}).features[0].shape == (None,)
    assert encode(batch) == [serialize({"x": ("int64", [2, 3])}), serialize({"x": ("int64", [1])}), serialize({})]


@pytest.mark.skipif(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 6 << 30, reason="needs 2 GiB of memory")
def test_a_record_beyond_two_gib_is_named() -> None:
    # zeros that nobody writes to cost no memory; the row before is small
    zeros = pa.py_buffer(np.zeros(2**31, np.uint8))
    starts = pa.py_buffer(np.array([0, 1, 2**31], np.int64))
    batch = pa.record_batch({"x": pa.Array.from_buffers(pa.large_binary(), 2, [None, starts, zeros])})
    with pytest.raises(SchemaError, match=r"row 101 would become a record beyond 2 GiB"):
        for _ in ExampleEncoder(derive_spec(batch.schema, {})).encode(batch, 100):
            pass


def _frames(batch: pa.RecordBatch, **options: Any) -> Any:
    from tfr_assets.records.schema.feature_options import FeatureOptions

    return ExampleEncoder(derive_spec(batch.schema, {}, FeatureOptions(**options))).encode(batch)


_AT_THE_EDGE = """
import ctypes, mmap
import numpy as np
import pyarrow as pa
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.derive import derive_spec

def at_the_edge(buffer):
    '''A copy of a buffer whose last byte is the last of a page, before one that nobody may read.'''
    if buffer is None:
        return None
    pages = -(-max(buffer.size, 1) // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    guard = start + pages * mmap.PAGESIZE
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(guard), mmap.PAGESIZE, 0) == 0
    memory[pages * mmap.PAGESIZE - buffer.size : pages * mmap.PAGESIZE] = buffer.to_pybytes()
    return pa.foreign_buffer(guard - buffer.size, buffer.size, memory)

def moved(array):
    '''The array with all its buffers at the edge, each cut to what the format asks for.'''
    length, data_type = len(array), array.type
    found = array.buffers()
    if pa.types.is_list(data_type):
        parts = [found[0] and found[0].slice(0, -(-length // 8)), found[1].slice(0, (length + 1) * 4)]
        child = moved(array.values)
        return pa.Array.from_buffers(data_type, length, list(map(at_the_edge, parts)), children=[child])
    parts = [found[0] and found[0].slice(0, -(-length // 8))]
    if len(found) == 3:
        width = 8 if data_type in (pa.large_string(), pa.large_binary()) else 4
        starts = np.frombuffer(found[1], np.int64 if width == 8 else np.int32)[: length + 1]
        parts += [found[1].slice(0, (length + 1) * width), found[2].slice(0, int(starts[-1]))]
    else:
        parts.append(found[1].slice(0, -(-length * data_type.bit_width // 8)))
    return pa.Array.from_buffers(data_type, length, list(map(at_the_edge, parts)))

columns = {str(t): pa.array([1, None, 0, 1] * 2 + [1], pa.int8()).cast(t) for t in
           (pa.bool_(), pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())}
for size in (1, 7, 8, 31, 32, 33, 100, 127, 128, 129, 5000):
    texts = ["x" * size, None] * 4 + ["y" * size]
    for t in (pa.string(), pa.large_binary(), pa.binary(size)):
        columns[f"{t} of {size}"] = pa.array(texts, t)
    columns[f"list of {size}"] = pa.array([[text, text] for text in texts[::2]] * 2)[:9]
columns["list of lists"] = pa.array([[["x" * 31], []], None, [["y" * 100, "z"]]] * 3)
columns["list of int"] = pa.array([[1, 2], None, []] * 3, pa.list_(pa.int16()))
for name, column in columns.items():
    batch = pa.record_batch({name: column})
    edge = pa.record_batch({name: moved(column)})
    assert edge.equals(batch)
    for options in ({}, {"sequence": (name,)}, {"tensor": {name: "serialized"}}):
        if options and (not pa.types.is_list(column.type) or ("tensor" in options and "lists" in name)):
            continue
        spec = derive_spec(batch.schema, {}, FeatureOptions(**options))
        expected, found = (b"".join(bytes(f.data) for f in ExampleEncoder(spec).encode(b)) for b in (batch, edge))
        assert found == expected, name
print(len(columns))
"""


def test_nothing_is_read_behind_the_end_of_a_columns_memory() -> None:
    """Kernels copy 32 bytes at a time, but never from beyond a buffer: the process would die there."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", _AT_THE_EDGE], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "53\n"), done.stderr
