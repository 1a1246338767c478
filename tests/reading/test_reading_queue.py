"""The reader `file_queue`: worker processes that are killed, interrupted or not waited for leave nothing behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import tensorflow as tf

import tfr_assets
from tests.waiting import wait_for
from tfr_assets.layout import Layout

Written = Callable[..., Layout]
ROWS = 40_000  # more than all queues hold
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int64()), "text": ["x" * 100] * ROWS})


def ids(dataset: tf.data.Dataset) -> list[int]:
    return [int(i) for batch in dataset for i in batch["id"]]


def children(pid: int | str = "self") -> set[int]:
    return {int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()}


@pytest.fixture
def before() -> set[int]:
    return children()


def test_all_records_come_through_two_epochs_and_the_workers_go_with_the_dataset(
    written: Written, before: set[int]
) -> None:
    dataset = tfr_assets.read(written(TABLE).folder, 512, reader="file_queue")
    workers = children() - before
    assert len(workers) == 2
    for _ in range(2):
        assert sorted(ids(dataset)) == list(range(ROWS))
        assert children() - before == workers
    del dataset
    wait_for(lambda: not children() - before)


def test_a_seed_makes_the_order_the_same_in_every_run(written: Written) -> None:
    folder = written(TABLE, shards=7).folder
    first, again = (
        [ids(dataset) for _ in range(2)]
        for dataset in (tfr_assets.read(folder, 512, reader="file_queue", shuffle=True, seed=3) for _ in range(2))
    )
    assert first == again
    assert first[0] != first[1]
    assert sorted(first[0]) == list(range(ROWS))


def test_an_iterator_closed_early_leaves_no_process(written: Written, before: set[int]) -> None:
    dataset = tfr_assets.read(written(TABLE).folder, 64, reader="file_queue")
    iterator = iter(dataset)
    next(iterator)
    del iterator
    wait_for(lambda: not children() - before)
    assert sorted(ids(dataset)) == list(range(ROWS))  # the next epoch starts others
    del dataset
    wait_for(lambda: not children() - before)


def test_a_consumer_that_raises_leaves_no_process(written: Written, before: set[int]) -> None:
    def train() -> None:
        for _ in tfr_assets.read(written(TABLE).folder, 64, reader="file_queue"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    wait_for(lambda: not children() - before)


def test_a_killed_worker_is_an_error_that_names_signal_and_file(written: Written, before: set[int]) -> None:
    dataset = tfr_assets.read(written(TABLE).folder, 64, reader="file_queue")
    iterator = iter(dataset)
    next(iterator)
    for worker in children() - before:
        os.kill(worker, signal.SIGKILL)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"was killed by signal 9 .* while it read .*tfrecord-0000"
    ):
        for _ in iterator:
            pass
    assert sorted(ids(dataset)) == list(range(ROWS))


def test_a_worker_killed_between_epochs_is_replaced(written: Written, before: set[int]) -> None:
    dataset = tfr_assets.read(written(TABLE).folder, 512, reader="file_queue")
    for worker in children() - before:
        os.kill(worker, signal.SIGKILL)
    assert sorted(ids(dataset)) == list(range(ROWS))


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_a_process_that_is_killed_or_interrupted(written: Written, end: signal.Signals) -> None:
    script = f"""
import time, tfr_assets
for batch in tfr_assets.read({str(written(TABLE).folder)!r}, 64, reader="file_queue"):
    print("read", flush=True)
    time.sleep(60)
"""
    root = Path(tfr_assets.__file__).parent.parent
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=root) as process:
        assert process.stdout
        assert process.stdout.readline() == b"read\n"
        workers = children(process.pid)
        assert len(workers) == 2
        process.send_signal(end)
        process.wait(20)
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
