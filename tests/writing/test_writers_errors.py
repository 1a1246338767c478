"""Whatever is wrong with data or disk is one clear error; nobody is left running, and no unfinished file has a name."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tests.records.encoding import encode
from tests.records.reference import payloads_of
from tests.writing.conftest import WRITERS, files
from tests.writing.written_files import (
    expected_names,
    names,
    payloads,
)
from tfr_assets.errors import SchemaError, SourceError, WriteError
from tfr_assets.layout import manifest_path
from tfr_assets.records.frames.examine import examine
from tfr_assets.writing.write import write

SHARDS = [f"x-train.tfrecord-{shard:05d}-of-00004" for shard in range(4)]
SHARDED = ["sharded_threads", "sharded_processes"]
THREADED = [name for name in WRITERS if name != "sharded_processes"]
# starting a process takes most of a second, so that there are two only where it matters
FEW = {"sharded_processes": 1}


pytestmark = pytest.mark.usefixtures("nothing_is_left_running", "little_look_ahead")


def batches(count: int, rows: int = 100) -> Iterator[pa.RecordBatch]:
    for index in range(count):
        yield pa.record_batch({"n": range(index * rows, (index + 1) * rows)})


def bad_schema() -> Iterator[pa.RecordBatch]:
    yield from batches(5)
    yield pa.record_batch({"n": ["text"]})
    yield from batches(5)


def bad_iterator() -> Iterator[pa.RecordBatch]:
    yield from batches(5)
    raise ZeroDivisionError("in the program")


@pytest.mark.parametrize(("writer", "shards"), [*((name, 4) for name in WRITERS), *((name, None) for name in THREADED)])
def test_a_batch_of_another_schema(writer: str, shards: int | None, tmp_path: Path) -> None:
    path = tmp_path / ("x.tfrecord" if shards is None else "x")
    with pytest.raises(SourceError, match=r"data: batch 5: column 'n' is string, but int64 in data: batch 0"):
        write(bad_schema(), path, shards=shards, writer=WRITERS[writer], workers=FEW.get(writer, 2))
    assert names(tmp_path) == set()


@pytest.mark.parametrize("writer", WRITERS)
def test_data_that_raises_midway_leaves_what_was_there(writer: str, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    write(batches(8), folder, shards=4)
    before = files(folder)
    with pytest.raises(SourceError, match="data: raised ZeroDivisionError: in the program") as caught:
        write(bad_iterator(), folder, shards=4, writer=WRITERS[writer], workers=FEW.get(writer, 3))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert files(folder) == before


@pytest.mark.parametrize("writer", WRITERS)
def test_a_value_that_cannot_be_encoded_costs_its_shard_only(writer: str, tmp_path: Path) -> None:
    numbers = [*range(60), 2**63, *range(61, 100)]
    data = pa.table({"n": pa.array(numbers, pa.uint64())})
    with pytest.raises(WriteError) as caught:
        write(data, tmp_path / "x", shards=4, writer=WRITERS[writer], workers=FEW.get(writer, 2))
    message = str(caught.value)
    assert f"1 of 4 shards in {tmp_path / 'x'} could not be written; the others are whole" in message
    assert f"{SHARDS[2]}: column 'n' of type uint64 holds 9223372036854775808, at or after row 50" in message
    assert names(tmp_path / "x") == expected_names(SHARDS[0], SHARDS[1], SHARDS[3])
    good = pa.record_batch([pa.array([n for n in numbers if n < 2**63], pa.uint64())], ["n"])
    expected = encode(good)
    for shard, start in ((0, 0), (1, 25), (3, 74)):
        found = payloads_of((tmp_path / "x" / SHARDS[shard]).read_bytes())
        assert sorted(found) == sorted(expected[start : start + 25])
        assert manifest_path(tmp_path / "x" / SHARDS[shard]).exists()


def test_where_every_shard_fails_no_others_are_told_of(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"2 of 2 shards in .* could not be written\. Nothing was left"):
        write(pa.table({"n": pa.array([2**63] * 4, pa.uint64())}), tmp_path / "x", shards=2)


@pytest.mark.parametrize("writer", WRITERS)
def test_the_error_of_a_single_file_is_raised_as_it_is(writer: str, tmp_path: Path) -> None:
    def endless() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([1], pa.uint64())], ["n"])
        while True:
            yield pa.record_batch([pa.array([2**63], pa.uint64())], ["n"])

    with pytest.raises(SchemaError, match="column 'n' of type uint64 holds 9223372036854775808"):
        write(endless(), tmp_path / "x.tfrecord", writer=WRITERS[writer], workers=FEW.get(writer, 2))
    assert names(tmp_path) == set()


def test_a_program_that_tells_progress_may_fail(tmp_path: Path) -> None:
    def told(records: int) -> None:
        raise ZeroDivisionError("progress")

    for writer in WRITERS:
        with pytest.raises(ZeroDivisionError, match="progress"):
            write(
                batches(50), tmp_path / "x", shards=4, writer=WRITERS[writer], workers=FEW.get(writer, 2), progress=told
            )
        assert names(tmp_path) == set()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Lets the system refuse to make a file larger; as on a full disk, some bytes are written before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_ends_even_an_endless_stream(writer: str, tmp_path: Path) -> None:
    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            yield pa.record_batch({"x": [b"x" * 1000] * 500})

    with (
        largest_file(3_000_000),
        pytest.raises(WriteError, match=r"4 of 4 shards(.|\n)*cannot write .*: File too large"),
    ):
        write(endless(), tmp_path / "x", shards=4, writer=WRITERS[writer], workers=FEW.get(writer, 2))
    assert names(tmp_path) == set()


@pytest.mark.parametrize("writer", SHARDED)
def test_a_shard_that_finds_no_room_leaves_the_others(writer: str, tmp_path: Path) -> None:
    values = [b"x" * (100_000 if 50 <= n < 75 else 10) for n in range(100)]
    old = write([b"old"] * 4, tmp_path / "x", shards=4)
    before = old.paths[2].read_bytes()
    with largest_file(1_000_000), pytest.raises(WriteError, match=rf"1 of 4 shards(.|\n)*{SHARDS[2]}.*File too large"):
        write(values, tmp_path / "x", shards=4, writer=WRITERS[writer], workers=FEW.get(writer, 2))
    assert old.paths[2].read_bytes() == before
    for shard in (0, 1, 3):
        assert payloads_of(old.paths[shard].read_bytes()) == [b"x" * 10] * 25
        assert examine(old.paths[shard]).ok
    whole = write(values, tmp_path / "x", shards=4)
    assert [record for each in payloads(whole) for record in each] == values


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for writer in WRITERS:
        with pytest.raises(WriteError, match="Not a directory"):
            write(batches(4), tmp_path / "file" / "x.tfrecord", writer=WRITERS[writer])


@pytest.mark.parametrize("writer", THREADED)
def test_what_is_drawn_is_not_far_ahead_of_what_is_written(writer: str, tmp_path: Path) -> None:
    drawn = written = most = 0

    def source() -> Iterator[pa.RecordBatch]:
        nonlocal drawn, most
        for _ in range(150):
            drawn += 100
            most = max(most, drawn - written)
            yield pa.record_batch({"x": [b"x" * 10_000] * 100})  # a block is 1 MB, and 104 rows

    def slow(records: int) -> None:
        nonlocal written
        time.sleep(0.001)
        written += records

    write(source(), tmp_path / "x", shards=2, writer=WRITERS[writer], workers=2, progress=slow)
    assert written == drawn == 15_000
    assert most < 3_000
