"""Training with TensorFlow and Keras that is stopped, or killed, and goes on with the batches that were left."""

import json
import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tensorflow as tf

import tfr_assets

from .datasets import write_dataset

ROOT = Path(tfr_assets.__file__).parent.parent
ROWS = 61


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_dataset(rows(), tmp_path_factory.mktemp("checkpoint")).folder)


def rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "x": pa.array([i / ROWS for i in range(ROWS)], pa.float32()),
            "lists": [[str(i)] * (i % 3) for i in range(ROWS)],
        }
    )


def made(folder: str, **options: Any) -> tf.data.Dataset:
    return tfr_assets.read(folder, 7, reader="resumable", **{"shuffle": 20, "seed": 3, **options})


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].numpy().tolist() for batch in batches]


@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"shard": (1, 2)}, {"drop_remainder": True}])
def test_an_iterator_is_saved_and_restored(folder: str, tmp_path: Path, options: Any) -> None:
    unbroken = ids(made(folder, repeat=3, **options))
    for count in (0, 1, len(unbroken) // 3, len(unbroken) // 3 + 1, len(unbroken)):
        batches = iter(made(folder, repeat=3, **options))
        assert ids(islice(batches, count)) == unbroken[:count]
        path = tf.train.Checkpoint(batches=batches).save(str(tmp_path / "saved"))
        again = iter(made(folder, repeat=3, **options))
        tf.train.Checkpoint(batches=again).restore(path)
        assert ids(again) == unbroken[count:]


def test_what_follows_it_is_saved_with_it(folder: str, tmp_path: Path) -> None:
    def pipeline() -> tf.data.Dataset:
        return made(folder, repeat=2).map(lambda batch: {"id": batch["id"] * 2}).unbatch().shuffle(9, 1).batch(5)

    unbroken = ids(pipeline())
    batches, again = iter(pipeline()), iter(pipeline())
    ids(islice(batches, 4))
    path = tf.train.Checkpoint(batches=batches).save(str(tmp_path / "saved"))
    tf.train.Checkpoint(batches=again).restore(path)
    assert ids(again) == unbroken[4:]


def test_epochs_have_orders_of_their_own_and_all_records(folder: str) -> None:
    found = ids(made(folder, repeat=2))
    first, second = (sum(part, []) for part in (found[:9], found[9:]))  # noqa: RUF017
    assert sorted(first) == sorted(second) == list(range(ROWS)) and first != second
    assert ids(made(folder, repeat=2)) == found != ids(made(folder, repeat=2, seed=4))


@pytest.mark.parametrize(
    "change",
    [
        "data",
        {"seed": 5},
        {"batch_size": 5},
        {"drop_remainder": True},
        {"shuffle": False},
        {"repeat": 2},
        {"shard": (0, 2)},
    ],
    ids=str,
)
def test_a_checkpoint_of_other_batches_is_refused(folder: str, tmp_path: Path, change: Any) -> None:
    batches = iter(made(folder))
    next(batches)
    path = tf.train.Checkpoint(batches=batches).save(str(tmp_path / "saved"))
    if change == "data":
        other = made(str(write_dataset(rows().take(list(reversed(range(ROWS)))), tmp_path).folder))
    else:
        other = tfr_assets.read(
            folder, reader="resumable", **{"batch_size": 7, "shuffle": 20, "seed": 3, "repeat": 1, **change}
        )
    again = iter(other)
    tf.train.Checkpoint(batches=again).restore(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="checkpoint is of other data"):
        list(again)


_TRAIN = """
import os, signal, sys
import keras, tensorflow as tf, tfr_assets
folder, backup, seen, die_at = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((), name="x"), keras.layers.Reshape((1,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.1), "mse")
batches = tfr_assets.open(folder).keras(7, "x", "x", shuffle="global", seed=2)

class Watch(keras.callbacks.Callback):
    count = 0
    def on_train_batch_begin(self, batch, logs=None):
        Watch.count += 1
        if Watch.count == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
    def on_epoch_end(self, epoch, logs=None):
        with open(seen, "a") as file:
            print(epoch, batches.epoch, logs["loss"], *model.get_weights()[0].ravel().tolist(), file=file)

model.fit(
    batches, epochs=4, shuffle=False, verbose=0,
    callbacks=[keras.callbacks.BackupAndRestore(backup), batches.follow(), Watch()],
)
"""


def test_training_of_keras_that_is_killed_goes_on_as_if_it_were_not(folder: str, tmp_path: Path) -> None:
    pytest.importorskip("keras", reason="the package `keras` is not installed")

    def train(name: str, die_at: int) -> int:
        arguments = [folder, str(tmp_path / f"backup-{name}"), str(tmp_path / name), str(die_at)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(
            [sys.executable, "-c", _TRAIN, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode

    assert train("unbroken", 0) == 0
    assert train("killed", 9 * 2 + 5) == -signal.SIGKILL  # in the third epoch, of nine batches
    assert train("killed", 3) == -signal.SIGKILL  # and once more
    assert train("killed", 0) == 0
    unbroken, killed = ((tmp_path / name).read_text().splitlines() for name in ("unbroken", "killed"))
    assert [line.split()[:2] for line in killed] == [[str(epoch), str(epoch + 1)] for epoch in range(4)]
    assert killed == unbroken


_GO_ON = """
import json, sys
import tensorflow as tf, tfr_assets
dataset = tfr_assets.read(sys.argv[1], 7, reader="resumable", shuffle=20, seed=3, repeat=2)
batches, saved = iter(dataset), sys.argv[2]
checkpoint = tf.train.CheckpointManager(tf.train.Checkpoint(batches=batches), saved, 1)
checkpoint.restore_or_initialize()
for batch, _ in zip(batches, range(4)):
    print(json.dumps(batch["id"].numpy().tolist()), flush=True)
    checkpoint.save()
"""


def test_another_process_goes_on(folder: str, tmp_path: Path) -> None:
    found: list[list[int]] = []
    for _ in range(5):
        command = [sys.executable, "-c", _GO_ON, folder, str(tmp_path / "saved")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found += map(json.loads, done.stdout.splitlines())
    assert found == ids(made(folder, repeat=2))
