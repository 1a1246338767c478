"""A program ends when it ends, also in the middle of an epoch: no thread of TensorFlow's waits for one of Python's."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tfr_assets.bench.readers.slow_server import Storage, slow_server
from tfr_assets.layout import Layout

Written = Callable[..., Layout]

_PROGRAM = """
import sys, time
import tfr_assets
from tfr_assets.records.examples.ranges import RangeDecoder

def slowly(self, *arguments, decode=RangeDecoder.decode):  # so that a generator waits at the end
    time.sleep(0.2)
    return decode(self, *arguments)

RangeDecoder.decode = slowly
where, reader = sys.argv[1:]
iterator = iter(tfr_assets.read(where, 10, reader=reader))
print(len(next(iterator)["id"]), flush=True)
"""


def _run(where: str, reader: str) -> None:
    arguments = [sys.executable, "-c", _PROGRAM, where, reader]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr


@pytest.fixture
def layout(written: Written, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr("tfr_assets.records.frames.marks.SPAN", 20_000)  # many pieces
    return written(pa.table({"id": range(20_000), "t": [f"{i:050d}" for i in range(20_000)]}), shards=3)


@pytest.mark.parametrize("reader", ["columnar", "file_queue"])
def test_a_program_ends_in_the_middle_of_an_epoch(layout: Layout, reader: str) -> None:
    _run(str(layout.folder), reader)


def test_a_program_that_ends_in_the_middle_of_a_file_says_nothing(layout: Layout) -> None:
    program = """
import sys
import tfr_assets

iterator = iter(tfr_assets.read(sys.argv[1], 10, reader="naive"))
next(iterator)
kept = [iterator]
kept.append(kept)  # so that nothing but the interpreter's end ends it
"""
    arguments = [sys.executable, "-c", program, str(layout.folder)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=90, check=True)
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("url", [False, True])
def test_batches_that_outlive_the_modules_end_without_a_word(layout: Layout, url: bool) -> None:
    program = """
import builtins, sys
import tfr_assets

iterator = tfr_assets.batches(sys.argv[1], 10)
next(iterator)
builtins.kept = iterator  # as PyTorch keeps what it wraps, until no module has its names any more
"""
    with slow_server(layout.folder, Storage()) as address:
        where = f"{address}/shards" if url else str(layout.shards)
        done = subprocess.run([sys.executable, "-c", program, where], capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_ends_while_it_waits_for_storage(layout: Layout) -> None:
    with slow_server(layout.folder, Storage(first_byte_ms=20, mb_per_second=0.2)) as url:
        _run(url + "/shards", "vectorized")


def test_a_descriptor_that_is_another_files_by_then_is_not_touched_at_exit(tmp_path: Path) -> None:
    (tmp_path / "read").write_bytes(bytes(1000))
    program = """
import atexit, os, sys
from tfr_assets.storage.pipe import open_piped

read, written = sys.argv[1:]
atexit.register(lambda: [os.write(file, b"x") for file in files])  # after all that is registered later
with open_piped("file://" + read, 1000) as descriptor:
    while os.read(descriptor, 100):
        pass
files = [os.open(written, os.O_CREAT | os.O_WRONLY | os.O_APPEND) for _ in range(8)]  # with numbers that are free again
"""
    arguments = [sys.executable, "-c", program, str(tmp_path / "read"), str(tmp_path / "written")]
    subprocess.run(arguments, timeout=90, check=True)
    assert (tmp_path / "written").read_bytes() == b"x" * 8
