"""The reader `data_service`: real processes, every record once, and an end that is an end."""

import gc
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import tensorflow as tf

import tfr_assets
from tests.waiting import wait_for
from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout, index_path
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.registry import READERS
from tfr_assets.reading.tensors.spec import element_spec
from tfr_assets.records.frames.index import read_index

from .datasets import write_dataset

ROWS = 20_000
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int64()), "list": [[i] * (i % 3) for i in range(ROWS)]})


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return write_dataset(TABLE, tmp_path_factory.mktemp("served"), shards=7)


@pytest.fixture(scope="module")
def held(layout: Layout) -> list[tf.data.Dataset]:
    """One dataset for all tests, because its processes take some seconds to start; the last test lets go of it."""
    return [READERS["data_service"](locate(layout.folder), ReadOptions(600, shuffle=100, on_error="raise"))]


def service_processes() -> list[int]:
    """Children of this process that are of a service."""
    children = {int(child) for path in Path("/proc/self/task").glob("*/children") for child in path.read_text().split()}
    return sorted(child for child in children if b"service_process" in Path(f"/proc/{child}/cmdline").read_bytes())


def test_every_record_comes_once_in_batches_of_the_size_asked_for(held: list[tf.data.Dataset], layout: Layout) -> None:
    (served,) = held
    assert served.element_spec == element_spec(locate(layout.folder).features)
    assert served.cardinality() == 34
    epochs = []
    for _ in range(2):
        batches = list(served)
        assert [len(batch["id"]) for batch in batches] == [600] * 33 + [200]
        rows = [(int(i), row) for batch in batches for i, row in zip(batch["id"], batch["list"].to_list(), strict=True)]
        assert sorted(rows) == list(enumerate(TABLE["list"].to_pylist()))
        epochs.append([i for i, _ in rows])
    assert epochs[0] != epochs[1]


def test_leaving_early_does_not_hang(held: list[tf.data.Dataset]) -> None:
    (served,) = held
    iterator = iter(served)
    next(iterator)
    del iterator
    assert sum(len(batch["id"]) for batch in served) == ROWS


def test_damage_is_named(held: list[tf.data.Dataset], layout: Layout) -> None:
    (served,) = held
    path = layout.shard_path("train-00003-of-00007")
    intact = path.read_bytes()
    at = int(read_index(index_path(path))[5, 0]) + 12
    path.write_bytes(intact[:at] + bytes([intact[at] ^ 1]) + intact[at + 1 :])
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"00003-of-00007: record 5 at byte {at}: data CRC"):
            list(served)
    finally:
        path.write_bytes(intact)


_FORGOTTEN = """
import sys, tfr_assets
try:
    for _ in tfr_assets.read(sys.argv[1], reader="data_service"):
        pass
except Exception as error:
    print("record 0 at byte 0" in str(error))
"""


def test_a_dataset_that_nobody_keeps_ends_with_the_error(tmp_path: Path) -> None:
    tfr_assets.write(TABLE, tmp_path / "x", shards=3)
    path = tmp_path / "x/x-train.tfrecord-00000-of-00003"
    path.write_bytes(b"\0" + path.read_bytes()[1:])
    done = subprocess.run([sys.executable, "-c", _FORGOTTEN, tmp_path / "x"], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"True\n"), done.stderr


def test_a_killed_worker_is_an_error_and_nothing_is_left(held: list[tf.data.Dataset]) -> None:
    (served,) = held
    iterator = iter(served)
    next(iterator)
    os.kill(service_processes()[-1], signal.SIGKILL)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf.data service: process \d+ was killed by signal 9"):
        for _ in iterator:
            pass
        list(served)  # the epoch may have been through
    del served, iterator
    held.clear()
    gc.collect()
    wait_for(lambda: not service_processes())


def test_what_it_cannot_do_is_refused(layout: Layout) -> None:
    with pytest.raises(ConfigError, match="cannot leave damaged records out"):
        tfr_assets.read(layout.folder, reader="data_service", on_error="skip")
    files = replace(locate(layout.folder), paths=("memory://x",) * 7)
    with pytest.raises(ConfigError, match=r"reads local files only, and memory://x is a URL: .* use 'file_queue'"):
        READERS["data_service"](files, ReadOptions())
