"""The op of our own: rows of NumPy's columns become the tensors that TensorFlow makes of the same values."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import tfr_assets
from tests.allocated import check_freed
from tests.records.decoding import tensor_strings
from tests.records.reference import examples
from tests.waiting import wait_for
from tfr_assets.layout import Layout
from tfr_assets.reading.tensors.hand_over import HandedOver
from tfr_assets.reading.tensors.op import tensors_of
from tfr_assets.records.arrow.arrays import Column, Ragged, Strings

from .datasets import write_dataset


def strings(values: list[bytes], inner: tuple[int, ...] = (), padding: int = 0) -> Strings:
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return Strings(offsets, np.frombuffer(b"".join(values) + bytes(padding), np.uint8), inner)


def fetched(columns: list[Column], dtypes: list[tf.DType], batch_size: int, outputs: list[tf.DType]) -> list[Any]:
    """Returns the op's outputs for each batch, and sees to it that what was handed over may go then."""
    rows = HandedOver(columns, [dtype.as_datatype_enum for dtype in dtypes], batch_size)
    found = []
    for batch in rows.batches:
        assert not rows.fetched
        found.append([tensor.numpy() for tensor in tensors_of(tf.constant(batch), outputs)])
    assert rows.fetched
    return found


@examples(80)
@given(
    values=st.lists(st.one_of(st.binary(max_size=26), st.binary(min_size=20, max_size=300)), min_size=1, max_size=40),
    size=st.integers(1, 45),
    padding=st.sampled_from([0, 64]),
)
def test_strings_of_any_length(values: list[bytes], size: int, padding: int) -> None:
    found = fetched([strings(values, padding=padding)], [tf.string], size, [tf.string])
    assert [batch[0].tolist() for batch in found] == [values[i : i + size] for i in range(0, len(values), size)]


@pytest.mark.parametrize("length", range(60))
def test_strings_can_be_used_and_copied(length: int) -> None:
    values = [b"x" * length, b"", b"y" * length]
    rows = HandedOver([strings(values)], [tf.string.as_datatype_enum], 3)
    (tensor,) = tensors_of(tf.constant(rows.batches[0]), [tf.string])
    joined = tf.strings.join([tensor, tf.reverse(tensor, [0])])
    assert joined.numpy().tolist() == [b"x" * length + b"y" * length, b"", b"y" * length + b"x" * length]
    assert tf.strings.length(tf.concat([tensor, tensor], 0)).numpy().tolist() == [length, 0, length] * 2


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float64"]
)
def test_numbers_of_any_type_and_shape(dtype: str) -> None:
    columns: list[Column] = [np.arange(7 * n).reshape(7, *shape).astype(dtype) for n, shape in ((1, ()), (6, (2, 3)))]
    both = [tf.as_dtype(dtype)] * 2
    for start, found in zip(range(0, 7, 3), fetched(columns, both, 3, both), strict=True):
        for column, values in zip(columns, found, strict=True):
            assert values.dtype == dtype
            np.testing.assert_array_equal(values, column[start : start + 3])


@examples(40)
@given(
    rows=st.lists(st.lists(st.lists(st.binary(max_size=30), max_size=3), max_size=3), min_size=1, max_size=12),
    size=st.integers(1, 13),
    first=st.integers(0, 11),
)
def test_ragged_rows_at_any_place(rows: list[list[list[bytes]]], size: int, first: int) -> None:
    flat = [inner for row in rows for inner in row]
    values = strings([value for inner in flat for value in inner])
    inner = Ragged(np.cumsum([0, *map(len, flat)], dtype=np.int64), values)
    column = Ragged(np.cumsum([0, *map(len, rows)], dtype=np.int64), inner)[min(first, len(rows) - 1) :]
    wanted = rows[min(first, len(rows) - 1) :]
    found = fetched([column], [tf.string], size, [tf.int64, tf.int64, tf.string])
    for start, (outer_splits, inner_splits, flat_values) in zip(range(0, len(wanted), size), found, strict=True):
        tensor = tf.RaggedTensor.from_nested_row_splits(flat_values, [outer_splits, inner_splits], validate=True)
        assert tensor.to_list() == wanted[start : start + size]


def test_a_problem_is_the_ops_error() -> None:
    rows = HandedOver([], [], 1, "train-00001: record 7 – is damaged")
    with pytest.raises(tf.errors.InvalidArgumentError, match="train-00001: record 7 – is damaged"):
        tensors_of(tf.constant(rows.batches[0]), [tf.int64])
    assert rows.fetched


def test_strings_that_are_taken_are_freed_with_their_tensor() -> None:
    values = [b"", b"x" * 22, b"y" * 23, b"z" * 300_000] * 5

    def run() -> None:
        assert fetched([tensor_strings(values)], [tf.string], 7, [tf.string])[2][0].tolist() == values[14:]
        rows = HandedOver([tensor_strings(values)], [tf.string.as_datatype_enum], 7)  # of which one batch is taken
        tensors_of(tf.constant(rows.batches[1]), [tf.string])

    check_freed(run, 300_000)


@pytest.mark.parametrize("make", [strings, tensor_strings])
def test_a_batch_is_asked_for_once(make: Callable[[list[bytes]], Any]) -> None:
    rows = HandedOver([make([b"a" * 30])], [tf.string.as_datatype_enum], 1)
    tensors_of(tf.constant(rows.batches[0]), [tf.string])
    with pytest.raises(tf.errors.InvalidArgumentError, match="asked for twice"):
        tensors_of(tf.constant(rows.batches[0]), [tf.string])


@pytest.fixture
def layout(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr("tfr_assets.records.frames.marks.SPAN", 20_000)  # many pieces, so that there is something left
    table = pa.table({"id": range(5_000), "t": [str(i) * (i % 9) for i in range(5_000)]})
    return write_dataset(table, tmp_path, shards=2)


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> "weakref.WeakSet[HandedOver]":
    """All rows that are handed over and still held."""
    held: weakref.WeakSet[HandedOver] = weakref.WeakSet()

    def hand_over(*arguments: Any) -> HandedOver:
        rows = HandedOver(*arguments)
        held.add(rows)
        return rows

    monkeypatch.setattr("tfr_assets.reading.readers.columnar.HandedOver", hand_over)
    return held


def gone(held: "weakref.WeakSet[HandedOver]") -> bool:
    gc.collect()
    return not held  # a thread of TensorFlow's may hold the last one for a moment


def test_memory_goes_when_an_iterator_is_dropped(layout: Layout, handed_over: "weakref.WeakSet[HandedOver]") -> None:
    dataset = tfr_assets.read(layout.folder, 10, reader="columnar")
    for _ in range(5):
        iterator = iter(dataset)
        next(iterator)
        assert len(handed_over) > 0
        del iterator
        wait_for(lambda: gone(handed_over))


def test_memory_goes_while_an_epoch_lasts_and_with_the_next(
    layout: Layout, handed_over: "weakref.WeakSet[HandedOver]"
) -> None:
    dataset = tfr_assets.read(layout.folder, 10, reader="columnar")
    for _ in range(3):
        seen, most = [], 0
        for batch in dataset:
            seen += batch["id"].numpy().tolist()
            most = max(most, len(handed_over))
        assert seen == list(range(5_000))
        assert most < 8  # of more than 20 pieces
    # The end of an epoch may come before its last rows are fetched: these are held until the next epoch of any dataset.
    wait_for(lambda: all(rows.fetched for rows in tuple(handed_over)))
    earlier = weakref.WeakSet(handed_over)
    next(iterator := iter(dataset))
    wait_for(lambda: gone(earlier))
    del dataset, batch, iterator
    wait_for(lambda: gone(handed_over))


def test_two_iterators_of_a_dataset_are_independent(layout: Layout) -> None:
    dataset = tfr_assets.read(layout.folder, 10, reader="columnar")
    for one, other in zip(dataset, dataset, strict=True):
        assert one["id"].numpy().tolist() == other["id"].numpy().tolist()
        assert one["t"].numpy().tolist() == other["t"].numpy().tolist()


def output_of(code: str, layout: Layout) -> str:
    """Returns what a program of its own prints: of what a process does once only, or cannot undo."""
    arguments = [sys.executable, "-c", code, str(layout.folder)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_debug_mode_reads_the_same(layout: Layout) -> None:
    code = (
        "import sys, tensorflow as tf, tfr_assets\n"
        "tf.data.experimental.enable_debug_mode()\n"
        "batches = list(tfr_assets.read(sys.argv[1], 1000, reader='columnar'))\n"
        "print(sum(int(batch['id'].numpy().sum()) for batch in batches))\n"
    )
    assert int(output_of(code, layout)) == sum(range(5_000))


def test_threads_may_be_the_first_to_read_together(layout: Layout) -> None:
    code = (
        "import sys, tfr_assets\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def read(_):\n"
        "    batches = tfr_assets.read(sys.argv[1], 1000, reader='columnar')\n"
        "    return sum(int(batch['id'].numpy().sum()) for batch in batches)\n"
        "with ThreadPoolExecutor() as threads:\n"
        "    print(*threads.map(read, range(3)))\n"
    )
    assert output_of(code, layout).split() == [str(sum(range(5_000)))] * 3
