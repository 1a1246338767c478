"""Grain, Hugging Face, Keras and JAX: the records are ours, stopping and going on is theirs. None needs TensorFlow.

JAX, and Keras with any backend, run in processes of their own: JAX's threads and forked processes do not go together.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfr_assets
from tfr_assets.errors import ConfigError
from tfr_assets.packages import is_installed
from tfr_assets.reading.access.dataset import Dataset

from .datasets import write_dataset
from .test_reading_columnar import table

ROOT = Path(tfr_assets.__file__).parent.parent
ROWS = 101


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return tfr_assets.open(write_dataset(table(ROWS), tmp_path_factory.mktemp("adapters")).folder)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Numbers that a model learns from."""
    rows = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "x": pa.array([i / ROWS for i in range(ROWS)], pa.float32()),
            "pair": pa.array([[i, -i] for i in range(ROWS)], pa.list_(pa.float32(), 2)),
            "y": pa.array([2 * i / ROWS for i in range(ROWS)], pa.float32()),
            "text": [str(i) for i in range(ROWS)],
        }
    )
    return tfr_assets.open(write_dataset(rows, tmp_path_factory.mktemp("dense")).folder)


def ids(records: Any) -> list[int]:
    return [int(record["id"]) for record in records]


def in_order(opened: Dataset, shuffle: Any, epoch: int = 0) -> list[int]:
    """What `batches` gives in an epoch."""
    found = [int(i) for batch in opened.batches(7, shuffle=shuffle, epochs=epoch + 1) for i in batch["id"]]
    return found[epoch * len(opened) :]


class TestGrain:
    @pytest.fixture
    def grain(self) -> Any:
        return pytest.importorskip("grain", reason="the package `grain` is not installed")

    def test_it_reads_any_record(self, opened: Dataset, grain: Any) -> None:
        source = grain.MapDataset.source(opened)
        assert len(source) == ROWS and ids([source[3], source[ROWS]]) == [3, 0]
        assert ids(source._getitems([5, 2])) == [5, 2]
        assert sorted(ids(source.shuffle(seed=1))) == list(range(ROWS))

    def test_it_asks_for_a_batch_at_once(self, opened: Dataset, grain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[int] = []
        take = Dataset.take
        monkeypatch.setattr(
            Dataset, "take", lambda self, some, **options: asked.append(len(some)) or take(self, some, **options)
        )
        grain.MapDataset.source(opened)._getitems(list(range(64)))
        assert asked == [64]

    @pytest.mark.parametrize("count", [0, 5, 11])
    def test_it_goes_on_from_a_checkpoint(self, opened: Dataset, grain: Any, count: int) -> None:
        def batches() -> Any:
            numbers = grain.MapDataset.source(opened).map(lambda record: {"id": record["id"]})
            return iter(numbers.shuffle(seed=3).to_iter_dataset().batch(9))

        def values(some: Any) -> list[list[int]]:
            return [batch["id"].tolist() for batch in some]

        unbroken = values(batches())
        first, again = batches(), batches()
        assert values(islice(first, count)) == unbroken[:count]
        again.set_state(json.loads(json.dumps(first.get_state())))
        assert values(again) == unbroken[count:]
        assert sorted(chain(*unbroken)) == list(range(ROWS))


class TestHuggingFace:
    @pytest.fixture
    def datasets(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setenv("HF_HOME", str(tmp_path))
        return pytest.importorskip("datasets", reason="the package `datasets` is not installed")

    @pytest.fixture
    def small_spans(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tfr_assets.reading.access.frameworks._SPAN_BYTES", 1)  # 16 records each

    def test_records_are_those_of_the_dataset(self, opened: Dataset, datasets: Any) -> None:
        records = opened.take(slice(None), into="arrow").to_pylist()
        assert list(map(str, opened.hugging_face())) == list(map(str, records))  # NaN is not NaN
        found = opened.hugging_face(columns=["name", "id"])
        assert list(next(iter(found))) == ["name", "id"] and found.features["id"].dtype == "int64"

    @pytest.mark.parametrize("shuffle", [False, "global", 7])
    @pytest.mark.parametrize("epoch", [0, 2])
    def test_its_order_is_ours(
        self, opened: Dataset, datasets: Any, small_spans: None, shuffle: Any, epoch: int
    ) -> None:
        assert ids(opened.hugging_face(shuffle=shuffle, epoch=epoch)) == in_order(opened, shuffle, epoch)

    @pytest.mark.parametrize("count", [0, 1, 16, 40, ROWS])
    def test_it_goes_on_where_it_was(self, opened: Dataset, datasets: Any, small_spans: None, count: int) -> None:
        first = opened.hugging_face(shuffle="global")
        taken = ids(islice(first, count))
        state = json.loads(json.dumps(first.state_dict()))
        again = opened.hugging_face(shuffle="global")
        again.load_state_dict(state)
        assert taken + ids(again) == in_order(opened, "global")

    def test_what_came_before_is_not_read_again(
        self, opened: Dataset, datasets: Any, small_spans: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = opened.hugging_face(columns=["id"])
        ids(islice(first, 90))
        again = opened.hugging_face(columns=["id"])
        again.load_state_dict(first.state_dict())
        read: list[int] = []
        take = Dataset.take
        monkeypatch.setattr(
            Dataset, "take", lambda self, some, **options: read.extend(some) or take(self, some, **options)
        )
        assert ids(again) == list(range(90, ROWS))
        assert min(read) == 80

    def test_it_is_shuffled_mapped_and_divided(self, opened: Dataset, datasets: Any, small_spans: None) -> None:
        from datasets.distributed import split_dataset_by_node

        whole = opened.hugging_face(columns=["id"])
        shuffled = ids(whole.shuffle(seed=1, buffer_size=20).map(lambda record: {"id": record["id"] + 1}))
        assert sorted(shuffled) == list(range(1, ROWS + 1)) != shuffled
        shares = [ids(split_dataset_by_node(whole, rank, 2)) for rank in range(2)]
        assert sorted(chain(*shares)) == list(range(ROWS))

    def test_an_empty_dataset_has_no_record(self, datasets: Any, written: Callable[..., Any]) -> None:
        empty = tfr_assets.open(written(pa.table({"id": pa.array([], pa.int64())})).folder)
        assert list(empty.hugging_face()) == []


def run(script: str, *arguments: str, **environment: str) -> Any:
    """Runs a script without TensorFlow, unless it needs it; returns what it printed as JSON."""
    code = f"import json, sys\nimport tfr_assets\nopened = tfr_assets.open(sys.argv[1])\n{script}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def folder_of(opened: Dataset) -> str:
    return str(Path(opened._files.paths[0]).parent)


_FIT = """
import keras
keras.utils.set_random_seed(1)

def fit(batches, initial_epoch=0, epochs=2, weights=None):
    inputs = {"x": keras.Input((), name="x"), "pair": keras.Input((2,), name="pair")}
    joined = keras.layers.Concatenate()([keras.layers.Reshape((1,))(inputs["x"]), inputs["pair"]])
    model = keras.Model(inputs, keras.layers.Dense(1)(joined))
    if weights is not None:
        model.set_weights(weights)
    model.compile(keras.optimizers.SGD(1e-5), "mse")
    history = model.fit(batches, epochs=epochs, initial_epoch=initial_epoch, shuffle=False, verbose=0)
    return history.history["loss"], model.get_weights()

def batches(epoch=0):
    return opened.keras(16, ["x", "pair"], "y", shuffle="global", seed=5, epoch=epoch)

_, start = fit(batches(), epochs=1)
unbroken, _ = fit(batches(), epochs=4, weights=start)
first, kept = fit(batches(), epochs=2, weights=start)
rest, _ = fit(batches(epoch=2), initial_epoch=2, epochs=4, weights=kept)
print(json.dumps([keras.backend.backend(), unbroken, first + rest]))
"""


class TestKeras:
    @pytest.mark.parametrize("backend", ["tensorflow", "torch", "jax"])
    def test_it_fits_whatever_the_backend(self, dense: Dataset, backend: str) -> None:
        for package in ("keras", backend):
            if not is_installed(package):
                pytest.skip(f"the package `{package}` is not installed")
        used, unbroken, in_two = run(_FIT, folder_of(dense), KERAS_BACKEND=backend)
        assert used == backend and unbroken == pytest.approx(in_two, rel=1e-4)

    def test_batches_are_those_of_the_order(self, dense: Dataset) -> None:
        pytest.importorskip("keras", reason="the package `keras` is not installed")
        batches = dense.keras(16, "id", shuffle="global")
        for epoch in range(2):
            found = [int(i) for index in range(len(batches)) for i in batches[index][0]]
            assert found == in_order(dense, "global", epoch)
            batches.on_epoch_end()
        inputs, target = dense.keras(16, ["pair"], "y")[6]
        assert inputs["pair"].shape == (5, 2) and target.shape == (5,)

    def test_batches_end_as_sequences_do(self, dense: Dataset) -> None:
        pytest.importorskip("keras", reason="the package `keras` is not installed")
        batches = dense.keras(16, "id")
        assert [len(found) for (found,) in batches] == [16] * 6 + [5]
        assert batches[-1][0].tolist() == batches[6][0].tolist()
        for index in (7, -8):
            with pytest.raises(IndexError, match=rf"there is no batch {index}; an epoch has 7"):
                batches[index]

    @pytest.mark.parametrize("size", [0, -3, "100", 2.5, True])
    def test_sizes_that_are_no_positive_integers_are_refused(self, dense: Dataset, size: Any) -> None:
        pytest.importorskip("keras", reason="the package `keras` is not installed")
        with pytest.raises(ConfigError, match=r"batch_size=.* must be a positive integer"):
            dense.keras(size, "id")

    @pytest.mark.parametrize("column", ["text", "x2"])
    def test_what_a_model_cannot_take_is_refused(self, dense: Dataset, column: str) -> None:
        pytest.importorskip("keras", reason="the package `keras` is not installed")
        with pytest.raises(ConfigError, match=rf"column '{column}'"):
            dense.keras(16, ["x", column])


_JAX = """
import jax
import numpy as np
columns = opened.take(slice(3, 80), columns=["id", "x", "pair"])
found = opened.take(slice(3, 80), columns=["id", "x", "pair", "text"], into="jax")
for name, column in columns.items():
    assert isinstance(found[name], jax.Array) and np.array_equal(found[name], column), name
assert found["text"] == [str(i) for i in range(3, 80)]
assert found["x"].dtype == np.float32 and found["id"].dtype == np.int32
every = [int(i) for index in range(3) for batch in opened.batches(8, into="jax", shard=(index, 3)) for i in batch["id"]]
batches = opened.batches(8, into="jax", shuffle="global")
first = next(batches)
again = opened.batches(8, into="jax", shuffle="global")
again.restore(batches.state())
same = all(bool((a["id"] == b["id"]).all()) for a, b in zip(batches, again, strict=True))
step = jax.jit(lambda batch: batch["x"].sum() + batch["pair"].sum())
step({name: first[name] for name in ("x", "pair")})
ragged = tfr_assets.open(sys.argv[2]).take([2, 1], columns=["pairs"], into="jax")["pairs"]
many = tfr_assets.open(sys.argv[3])
try:
    refused = many.take([0], into="jax") and ""
except tfr_assets.ConfigError as error:
    refused = str(error)
jax.config.update("jax_enable_x64", True)
print(json.dumps([
    every, same, [part.tolist() for part in ragged], refused, int(many.take([0], into="jax")["n"][0]),
    "tensorflow" in sys.modules,
]))
"""


def test_jax_gets_arrays(dense: Dataset, opened: Dataset, tmp_path: Path) -> None:
    if not is_installed("jax"):
        pytest.skip("the package `jax` is not installed")
    many = write_dataset(pa.table({"n": [2**40]}), tmp_path)
    every, same, ragged, refused, exact, has_tensorflow = run(
        _JAX, folder_of(dense), folder_of(opened), str(many.folder)
    )
    assert sorted(every) == list(range(ROWS)) and same and not has_tensorflow
    assert ragged == [[0, 2, 3], [[2, -2], [2, -2], [1, -1]]]
    assert "column 'n' holds integers beyond 32 bits" in refused and exact == 2**40
