"""Datasets of what Python generates are what `tf.data.Dataset.from_generator` makes of it."""

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import tfr_assets
from tfr_assets.layout import Layout
from tfr_assets.reading.readers import generators as generated_module
from tfr_assets.reading.readers.generators import from_generator

NUMBER = tf.TensorSpec((), tf.int64)
PAIR = (tf.TensorSpec((None,), tf.string), tf.TensorSpec((), tf.string))


def up_to(stop: int = 3) -> Iterator[np.int64]:
    yield from map(np.int64, range(stop))


def pairs() -> Iterator[tuple[np.ndarray, str]]:
    yield np.array([b"a", b"\0b"], object), "one"
    yield np.empty(0, object), ""


def values(dataset: tf.data.Dataset) -> list[int]:
    return [int(value) for value in dataset]


def test_it_gives_what_the_generator_does_in_every_epoch() -> None:
    dataset = from_generator(up_to, NUMBER)
    assert dataset.element_spec == NUMBER
    assert values(dataset) == values(dataset) == [0, 1, 2]
    assert values(dataset.repeat(2)) == [0, 1, 2] * 2


def test_several_at_once_are_strings_with_their_shapes() -> None:
    dataset = from_generator(pairs, PAIR)
    assert dataset.element_spec == PAIR
    found = [(some.tolist(), word) for some, word in dataset.as_numpy_iterator()]
    assert found == [([b"a", b"\0b"], b"one"), ([], b"")]


_NESTED = """
import numpy as np
import tensorflow as tf
from tfr_assets.reading.readers.generators import from_generator
count = lambda stop: iter(np.arange(stop))
list(tf.data.Dataset.range(2).flat_map(lambda stop: from_generator(count, tf.TensorSpec((), tf.int64), [stop])))
"""


def test_within_another_dataset_nothing_is_complained_of(tmp_path: Path) -> None:
    program = tmp_path / "program.py"  # AutoGraph leaves alone what is in no file
    program.write_text(_NESTED)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=90, check=True)
    assert "AutoGraph" not in done.stderr


def test_iterators_are_independent() -> None:
    dataset = from_generator(up_to, NUMBER)
    one, other = iter(dataset), iter(dataset)
    assert [int(next(one)), int(next(one)), int(next(other)), int(next(one)), int(next(other))] == [0, 1, 0, 2, 1]
    zipped = tf.data.Dataset.zip(dataset, from_generator(lambda: up_to(2), NUMBER))
    assert [(int(a), int(b)) for a, b in zipped] == [(0, 0), (1, 1)]


def kept() -> int:
    gc.collect()
    return len(generated_module._functions)


def captured_by_another(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """A dataset that holds another one, of which no Python object is left."""
    return tf.data.Dataset.range(2).flat_map(lambda _: dataset)


def test_a_generator_is_kept_for_as_long_as_any_dataset_or_iterator_of_it_and_no_longer() -> None:
    before = kept()
    iterator = iter(from_generator(up_to, NUMBER).map(lambda value: value + 1).repeat(2).prefetch(1))
    nested = captured_by_another(from_generator(up_to, NUMBER).map(lambda value: value + 10))
    traced = tf.data.Dataset.range(2).flat_map(lambda stop: from_generator(up_to, NUMBER, (stop + 1,)))
    assert kept() == before + 3
    assert [int(value) for value in iterator] == [1, 2, 3] * 2
    for _ in range(2):
        assert values(nested) == [10, 11, 12] * 2 and values(traced) == [0, 0, 1]
    del iterator, nested, traced
    assert kept() == before


def test_reading_again_and_again_keeps_nothing(written: Callable[..., Layout]) -> None:
    folder = written(pa.table({"x": pa.array(range(30), pa.int64())})).folder

    def read_all(reader: str) -> None:
        dataset = tfr_assets.read(folder, 7, reader=reader)
        assert sum(len(batch["x"]) for batch in dataset) == 30

    before = kept()
    for reader in ("vectorized", "interleave", "bounded", "columnar", "autotuned"):
        for _ in range(2):
            read_all(reader)
    assert kept() == before


def test_it_takes_arguments_within_other_datasets() -> None:
    stops = tf.data.Dataset.range(4)
    nested = stops.interleave(lambda stop: from_generator(up_to, NUMBER, (stop,)), cycle_length=4, num_parallel_calls=4)
    assert sorted(values(nested)) == [0, 0, 0, 1, 1, 2]
    assert values(stops.flat_map(lambda stop: from_generator(up_to, NUMBER, (stop,)))) == [0, 0, 1, 0, 1, 2]


def test_it_runs_within_a_function() -> None:
    dataset = from_generator(up_to, NUMBER)

    @tf.function
    def total() -> tf.Tensor:
        return dataset.reduce(np.int64(0), lambda sum, value: sum + value)

    assert int(total()) == int(total()) == 3


def test_a_generator_is_closed_with_its_iterator() -> None:
    closed = threading.Event()

    def endless() -> Iterator[np.int64]:
        try:
            while True:
                yield np.int64(1)
        finally:
            closed.set()

    iterator = iter(from_generator(endless, NUMBER).prefetch(2))
    next(iterator)
    del iterator
    gc.collect()
    assert closed.wait(10)


def test_what_it_raises_is_an_error() -> None:
    def failing() -> Iterator[np.int64]:
        yield np.int64(1)
        raise ValueError("no second one")

    iterator = iter(from_generator(failing, NUMBER))
    next(iterator)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no second one"):
        next(iterator)
