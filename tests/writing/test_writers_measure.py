"""Measurements of writers: of whole writes, each in a process of its own, that leave nothing behind."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.writing.conftest import table
from tests.writing.written_files import names
from tfr_assets.bench.writers.measure import Contestant, measure_writers
from tfr_assets.bench.writers.serial import serial
from tfr_assets.errors import ConfigError, SchemaError, WriteError
from tfr_assets.writing.write import write

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    assert list(tmp_path.iterdir()) == []


def test_writers_are_measured_in_turns(tmp_path: Path) -> None:
    contestants = [
        Contestant("sharded_threads", workers=2, shards=3),
        Contestant(serial, compression="gzip"),
    ]
    threads, one = measure_writers(contestants, iter(table(3000).to_batches()), repeats=2, folder=tmp_path)
    assert (threads.writer, threads.workers, threads.shards) == ("sharded_threads", 2, 3)
    assert (one.writer, one.workers, one.shards) == ("serial", 1, None)
    for found in (threads, one):
        assert found.records == 3000
        assert len(found.times) == len(found.plain_times) == len(found.early_times) == 2
        assert 0 < found.fastest <= found.seconds <= found.slowest
        assert min(*found.plain_times, *found.early_times, found.cpu_seconds) > 0
        assert found.records_per_second == pytest.approx(3000 / found.seconds)
        assert found.mb_per_second == pytest.approx(found.bytes / found.seconds / 1e6)
        assert 20e6 < found.peak_memory_bytes < 1e9
    assert one.bytes < threads.bytes


def test_plain_writes_write_the_same_bytes_to_as_many_files(tmp_path: Path) -> None:
    from tfr_assets.bench.writers.plain_writes import PlainWrites

    written = write(table(500), tmp_path / "out", shards=3)
    contents = [path.read_bytes() for path in written.paths]
    plain, found = PlainWrites(tmp_path), []
    plain.take_over()
    assert names(tmp_path) == set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda folder: found.append(folder))
        plain.write(early=True)
    assert [path.read_bytes() for path in sorted(found[0].iterdir())] == contents
    shutil.rmtree(found[0])
    assert plain.write() > 0


def test_the_bytes_are_those_that_write_writes(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    written = write(table(100), tmp_path_factory.mktemp("other") / "x.tfrecord")
    (found,) = measure_writers([Contestant("serial")], table(100), repeats=1, folder=tmp_path)
    assert (found.records, found.bytes) == (written.records, written.bytes)


def test_what_cannot_be_measured_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no writer 'x'"):
        measure_writers([Contestant("x")], table(10), folder=tmp_path)
    with pytest.raises(ConfigError, match="repeats=0"):
        measure_writers([Contestant("serial")], table(10), repeats=0, folder=tmp_path)
    with pytest.raises(ConfigError, match="serialized already"):
        measure_writers([Contestant("serial")], [b"a"], folder=tmp_path)
    with pytest.raises(SchemaError, match="column 'n' of type uint64"):
        measure_writers([Contestant("serial")], pa.table({"n": pa.array([2**63], pa.uint64())}), folder=tmp_path)
    with pytest.raises(WriteError, match=r"cannot measure writers in .*nowhere: No such file"):
        measure_writers([Contestant("serial")], table(10), folder=tmp_path / "nowhere")


def test_what_another_user_left_is_left_alone() -> None:
    code = """
import os, sys, tempfile
from pathlib import Path
from tfr_assets.bench.writers.measure import _scratch
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    folder.chmod(0o777)
    theirs = folder / ".writers-theirs"
    theirs.mkdir(mode=0)
    if os.geteuid() == 0:  # who may open everything
        os.seteuid(65534)
    with _scratch(folder) as work:
        assert work.is_dir() and theirs.exists()
    os.seteuid(os.getuid())
    assert list(folder.iterdir()) == [theirs]
"""
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_a_killed_measurement_left_is_removed_by_the_next(tmp_path: Path) -> None:
    code = f"""
import os, time
from pathlib import Path
from tfr_assets.bench.writers.measure import _scratch
with _scratch(Path({str(tmp_path)!r})) as work:
    (work / "data.arrow").write_text("x")
    print("there", flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "there\n"
    (left,) = tmp_path.iterdir()
    measure_writers([Contestant("serial")], table(10), repeats=1, folder=tmp_path)
    assert left.exists()  # another measurement that runs is not disturbed
    process.kill()
    process.communicate()
    assert left.exists()
    measure_writers([Contestant("serial")], table(10), repeats=1, folder=tmp_path)
