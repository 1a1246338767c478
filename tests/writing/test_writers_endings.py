"""Programs and processes that end midway: nobody outlives them, and what is under a final name is whole."""

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tests.writing.written_files import (
    children_of,
    expected_names,
    names,
    nobody_is_left,
    own_children,
)
from tfr_assets.errors import WriteError
from tfr_assets.records.frames.examine import examine
from tfr_assets.writing.write import write
from tfr_assets.writing.writers import sharded_processes
from tfr_assets.writing.writers.payloads import PAYLOADS
from tfr_assets.writing.writers.pieces import End
from tfr_assets.writing.writers.process import fresh_process
from tfr_assets.writing.writers.write_plan import WritePlan

SHARDS = [f"x-train.tfrecord-{shard:05d}-of-00004" for shard in range(4)]


pytestmark = pytest.mark.usefixtures("nothing_is_left_running", "little_look_ahead")


def batches(count: int, rows: int) -> Iterator[pa.RecordBatch]:
    for index in range(count):
        yield pa.record_batch({"n": range(index * rows, (index + 1) * rows)})


@pytest.mark.parametrize("known", [True, False])
def test_a_killed_worker_process(known: bool, tmp_path: Path) -> None:
    killed = []

    def kill_one(records: int) -> None:
        if not killed:
            killed.append(own_children()[0])
            os.kill(killed[0], signal.SIGKILL)

    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            yield from batches(10, 1000)

    data = pa.Table.from_batches(list(batches(2_000, 1000))) if known else endless()
    with pytest.raises(WriteError, match=r"was killed by signal 9 \(SIGKILL\).*'sharded_threads'"):
        write(data, tmp_path / "x", shards=4, writer="sharded_processes", workers=2, progress=kill_one)
    assert killed
    whole = [path.name for path in (tmp_path / "x").glob("x-*")]
    assert names(tmp_path / "x") == expected_names(*whole)  # and nothing temporary
    for name in whole:
        assert examine(tmp_path / "x" / name).ok


FOREVER = """
import itertools, sys
import pyarrow as pa
from tfr_assets.bench.writers.measured import MEASURED
from tfr_assets.writing.write import write
batch = pa.record_batch({"n": range(1000)})
def told(records):
    global progress
    print("going", flush=True)
    progress = None
progress = told
def once(records):
    if progress:
        progress(records)
write(itertools.repeat(batch), sys.argv[1], shards=4, writer=MEASURED[sys.argv[2]], workers=2, progress=once)
"""


@contextmanager
def writing_forever(writer: str, folder: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A program that writes and does not stop, in a process group of its own; and what marks all its processes."""
    mark = f"TFR_TEST_MARK={uuid.uuid4().hex}"
    process = subprocess.Popen(
        [sys.executable, "-c", FOREVER, str(folder), writer],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **dict([mark.split("=")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout and process.stdout.readline() == "going\n", process.stderr and process.stderr.read()
        yield process, mark
    finally:
        process.kill()
        process.communicate()
    assert nobody_is_left(mark)


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["Ctrl-C", "to the program"])
@pytest.mark.parametrize("writer", ["sharded_threads", "sharded_processes", "single_writer_queue", "locked"])
def test_an_interrupt_ends_everything(writer: str, send: Callable[[int, int], None], tmp_path: Path) -> None:
    with writing_forever(writer, tmp_path / "x") as (process, mark):
        send(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert process.returncode == -signal.SIGINT and "KeyboardInterrupt" in err
        assert err.count("Traceback") <= 2  # where it was, and where it waited for the others
        assert nobody_is_left(mark)
        assert names(tmp_path) == set()


def test_a_worker_that_nobody_listens_to_ends_in_silence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan = WritePlan((tmp_path / "x.tfrecord",), PAYLOADS, None, {}, "none", 1, {}, 0)
    with fresh_process(sharded_processes.__name__) as process:
        process.stdout.close()
        sharded_processes._send(plan, [End(0, 0)], process.stdin)
    assert process.popen.returncode == 0
    assert capfd.readouterr().err == ""


def test_workers_do_not_outlive_a_killed_program(tmp_path: Path) -> None:
    with writing_forever("sharded_processes", tmp_path / "x") as (process, mark):
        assert len(children_of(process.pid)) == 2
        process.kill()
        process.wait()
        assert nobody_is_left(mark)
        assert names(tmp_path) == set()


def test_a_program_killed_midway_can_run_again(tmp_path: Path) -> None:
    with writing_forever("sharded_threads", tmp_path / "x") as (process, _):
        process.kill()
        process.wait()
    assert names(tmp_path) and not list((tmp_path / "x").glob("x-*"))  # temporary files only
    write(batches(8, 100), tmp_path / "x", shards=4)
    assert names(tmp_path / "x") == expected_names(*SHARDS) | {"feature_spec.json"}


def test_nothing_is_drawn_while_processes_cannot_write(tmp_path: Path) -> None:
    drawn = 0
    while_stopped: list[int] = []

    def source() -> Iterator[pa.RecordBatch]:
        nonlocal drawn
        for index in range(200):
            if index == 20:
                for process in own_children():
                    os.kill(process, signal.SIGSTOP)
                threading.Timer(0.5, go_on).start()
            drawn += 1
            yield pa.record_batch({"x": [b"x" * 10_000] * 100})

    def go_on() -> None:
        while_stopped.append(drawn)
        for process in own_children():
            os.kill(process, signal.SIGCONT)

    written = write(source(), tmp_path / "x", shards=2, writer="sharded_processes", workers=2)
    assert written.records == 20_000
    assert while_stopped[0] < 60
