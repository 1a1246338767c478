"""Files that the disk begins with early, in reserved room, hold what was written to them; a refusal is not lost."""

import os
import resource
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import pytest

from tfr_assets.storage import reserve as flush
from tfr_assets.storage.reserve import FlushedFile


@pytest.mark.parametrize("step", [1, 10, 4 << 20])
def test_what_is_written_is_there(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flush, "_STEP", step)
    parts = [b"", b"a" * 7, memoryview(b"b" * 5000), b"c", b"d" * 100_000]
    with (tmp_path / "file").open("wb", buffering=0) as file:
        output = FlushedFile(file.fileno())
        for part in parts:
            output.write(part)
    assert (tmp_path / "file").read_bytes() == b"".join(bytes(part) for part in parts)


def test_the_disk_begins_with_every_part_once_and_with_whole_steps_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, begun = flush._begin, []
    if begin is None:
        pytest.skip("this system has no sync_file_range")

    def told(descriptor: int, start: int, size: int, flags: int) -> int:
        begun.append((start, size, begin(descriptor, start, size, flags)))
        return 0

    monkeypatch.setattr(flush, "_begin", told)
    monkeypatch.setattr(flush, "_STEP", 4096)
    with (tmp_path / "file").open("wb", buffering=0) as file:
        output = FlushedFile(file.fileno())
        for size in (4000, 200, 10_000, 1, 2083, 5000):
            output.write(b"x" * size)
        output.end()
        output.end()
    assert begun == [(0, 4096, 0), (4096, 8192, 0), (12288, 8192, 0), (20480, 804, 0)]


def test_room_is_reserved_ahead_and_given_back(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb", buffering=0) as file:
        output = FlushedFile(file.fileno())
        for _ in range(9):
            output.write(b"x" * 1_000_000)
        if flush._reserve is None or allocated(file) < 20_000_000:
            pytest.skip("this system reserves no room")
        assert os.fstat(file.fileno()).st_size == 9_000_000
        output.end()
        os.fsync(file.fileno())
        assert allocated(file) < 10_000_000
    assert (tmp_path / "file").read_bytes() == b"x" * 9_000_000


def allocated(file: BinaryIO) -> int:
    """Bytes of the disk that a file has."""
    return os.fstat(file.fileno()).st_blocks * 512


def test_room_is_asked_for_now_and_then_and_not_for_a_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(flush, "_FREE", 0)
    monkeypatch.setattr(flush, "_is_of_a_disk", lambda _: True)
    monkeypatch.setattr(flush, "_reserve", lambda descriptor, mode, start, size: asked.append((start, size)))
    with (tmp_path / "file").open("wb", buffering=0) as file:
        output = FlushedFile(file.fileno())
        for _ in range(4):
            output.write(bytes(1 << 20))
        assert asked == []
        for _ in range(34):
            output.write(bytes(1 << 20))
    assert asked == [(start << 20, 17 << 20) for start in (4, 21)]


def test_nothing_is_reserved_where_others_may_need_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flush, "_FREE", 1 << 60)
    with (tmp_path / "file").open("wb", buffering=0) as file:
        output = FlushedFile(file.fileno())
        output.write(bytes(9_000_000))
        os.fsync(file.fileno())
        assert allocated(file) < 10_000_000


def test_many_open_files_reserve_little_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(flush, "_FREE", 0)
    monkeypatch.setattr(flush, "_is_of_a_disk", lambda _: True)
    monkeypatch.setattr(flush, "_reserve", lambda descriptor, *_: asked.append(descriptor))
    monkeypatch.setattr(flush, "_STEP", 1000)
    with ExitStack() as files:
        opened = [files.enter_context((tmp_path / str(i)).open("wb", buffering=0)) for i in range(40)]
        outputs = [FlushedFile(file.fileno()) for file in opened]
        for output in outputs:
            output.write(bytes(1001))
        first = [file.fileno() for file in opened[:16]]
        assert asked == first
        outputs[0].end()
        outputs[20].write(bytes(17 << 20))
        assert asked == [*first, opened[20].fileno()]
        del output, outputs  # as those do that fail
        FlushedFile(opened[30].fileno()).write(bytes(1001))
        assert asked == [*first, opened[20].fileno(), opened[30].fileno()]


def test_nothing_is_reserved_where_no_disk_lies_below(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or os.major(memory.stat().st_dev):
        pytest.skip("this system has no folder in memory")
    with TemporaryFile(dir=memory, buffering=0) as file:
        FlushedFile(file.fileno()).write(bytes(9_000_000))
        assert allocated(file) < 10_000_000


@pytest.mark.parametrize("call", [None, lambda *_: -1])
def test_a_system_that_cannot_do_so_writes_all_the_same(
    call: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flush, "_begin", call)
    monkeypatch.setattr(flush, "_reserve", call)
    with (tmp_path / "file").open("wb", buffering=0) as file:
        output = FlushedFile(file.fileno())
        output.write(bytes(5 << 20))
        output.end()
    assert (tmp_path / "file").stat().st_size == 5 << 20


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with (tmp_path / "file").open("wb", buffering=0) as file, pytest.raises(OSError, match="File too large"):
            FlushedFile(file.fileno()).write(bytes(200_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
