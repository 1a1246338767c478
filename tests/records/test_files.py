"""A file is whole under its final name, or what was there before is untouched and nothing is left behind."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tfr_assets.errors import WriteError
from tfr_assets.storage.atomic import atomic_file, remove_abandoned, write_all, write_atomically

OLD, NEW = b"old content", b"new content, longer than the old one"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def python(script: str, *arguments: object) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_the_name_appears_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    with atomic_file(path) as descriptor:
        write_all(descriptor, NEW)
        assert not path.exists() and len(names(path.parent)) == 1
    assert path.read_bytes() == NEW
    assert names(path.parent) == ["file"]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    with path.open("rb") as reader:
        with atomic_file(path) as descriptor:
            write_all(descriptor, NEW)
            assert path.read_bytes() == OLD
        assert reader.read() == OLD  # whoever has it open keeps the old one
    assert path.read_bytes() == NEW
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_an_exception_in_the_middle_leaves_what_was_there(error: type[BaseException], tmp_path: Path) -> None:
    for before in ([], ["file"]):
        told = WriteError if error is MemoryError else error
        with pytest.raises(told), atomic_file(tmp_path / "file") as descriptor:
            write_all(descriptor, NEW)
            raise error
        assert names(tmp_path) == before
        (tmp_path / "file").write_bytes(OLD)
    assert (tmp_path / "file").read_bytes() == OLD


def test_a_refusal_of_the_file_system_is_a_write_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    with pytest.raises(WriteError, match="No space left on device") as caught, atomic_file(path) as descriptor:
        write_all(descriptor, NEW)
        raise OSError(28, "No space left on device")
    assert str(path) in str(caught.value) and isinstance(caught.value.__cause__, OSError)
    assert path.read_bytes() == OLD and names(tmp_path) == ["file"]


def test_a_name_that_is_taken_by_a_folder_is_a_write_error(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(WriteError, match="file"):
        write_atomically(tmp_path / "file", NEW)
    assert names(tmp_path) == ["file"] and (tmp_path / "file").is_dir()


def test_a_folder_that_cannot_be_made_is_a_write_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    with pytest.raises(WriteError, match="file"):
        write_atomically(tmp_path / "file" / "below", NEW)
    assert (tmp_path / "file").read_bytes() == OLD


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_a_write_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(WriteError, match="Permission denied"):
            write_atomically(tmp_path / "file", NEW)
        assert names(tmp_path) == []
    finally:
        tmp_path.chmod(0o755)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """RLIMIT_FSIZE refuses what goes beyond it as a full disk does: `write` stops early, then fails."""
    script = """
import resource, sys
from pathlib import Path
from tfr_assets.errors import WriteError
from tfr_assets.storage.atomic import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_atomically(Path(sys.argv[1]), bytes(100_001))
except WriteError as error:
    print(error)
write_atomically(Path(sys.argv[1] + " that fits"), bytes(100_000))
"""
    path = tmp_path / "file"
    path.write_bytes(OLD)
    said, errors = python(script, path).communicate()
    assert "File too large" in said and str(path) in said, errors
    assert names(tmp_path) == ["file", "file that fits"]
    assert path.read_bytes() == OLD
    assert (tmp_path / "file that fits").stat().st_size == 100_000


def test_content_is_on_the_disk_before_it_has_its_name_and_the_name_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    synced: list[tuple[str, bool]] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        synced.append((kind, path.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    write_atomically(path, NEW)
    assert synced == [("file", False), ("folder", True)]


_WRITER = """
import sys
from pathlib import Path
from tfr_assets.storage.atomic import atomic_file, write_all
with atomic_file(Path(sys.argv[1])) as descriptor:
    write_all(descriptor, b"half of it")
    print("writing", flush=True)
    sys.stdin.readline()
"""


def test_a_killed_writers_file_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    writer = python(_WRITER, path)
    assert writer.stdout and writer.stdout.readline() == "writing\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    assert path.read_bytes() == OLD and len(names(tmp_path)) == 2
    write_atomically(tmp_path / "another", NEW)
    assert len(names(tmp_path)) == 3  # another name's strays are not its business
    write_atomically(path, NEW)
    assert names(tmp_path) == ["another", "file"] and path.read_bytes() == NEW


def test_a_terminated_writer_leaves_what_was_there(tmp_path: Path) -> None:
    """Python turns Ctrl-C into an exception, so that the writer cleans up itself."""
    path = tmp_path / "file"
    writer = python(_WRITER, path)
    assert writer.stdout and writer.stdout.readline() == "writing\n"
    writer.send_signal(signal.SIGINT)
    writer.communicate()
    assert names(tmp_path) == []


def test_a_living_writers_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    writer = python(_WRITER, path)
    assert writer.stdout and writer.stdout.readline() == "writing\n"
    remove_abandoned(path)
    write_atomically(path, NEW)
    assert len(names(tmp_path)) == 2 and path.read_bytes() == NEW
    writer.communicate("go on\n")
    assert writer.returncode == 0
    assert names(tmp_path) == ["file"] and path.read_bytes() == b"half of it"  # the last one wins, whole


def test_many_writers_of_one_name_all_succeed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([n]) * 1000 for n in range(8)]
    failures: list[BaseException] = []

    def write(content: bytes) -> None:
        try:
            for _ in range(40):
                write_atomically(path, content)
                assert path.read_bytes() in contents
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert names(tmp_path) == ["file"]


def test_the_mode_is_that_of_any_new_file(tmp_path: Path) -> None:
    script = """
import os, sys
os.umask(0o027)
from pathlib import Path
from tfr_assets.storage.atomic import write_atomically
write_atomically(Path(sys.argv[1]), b"")
"""
    writer = python(script, tmp_path / "file")
    assert writer.communicate() == ("", "")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_importing_keeps_the_umask() -> None:
    script = "import os; os.umask(0o027); import tfr_assets.storage.atomic; print(oct(os.umask(0)))"
    assert python(script).communicate()[0] == "0o27\n"


def test_names_with_special_characters(tmp_path: Path) -> None:
    for name in ("a[0]*?", "with space", "ünïcode", ".hidden"):
        stray = tmp_path / f".{name}.abandoned.tmp"
        stray.write_bytes(b"stray")
        write_atomically(tmp_path / name, NEW)
        assert (tmp_path / name).read_bytes() == NEW and not stray.exists()
    foreign = tmp_path / ".a0x.abandoned.tmp"  # what the first name would match as a pattern
    foreign.write_bytes(b"foreign")
    write_atomically(tmp_path / "a[0]*?", NEW)
    assert foreign.exists()


def test_write_all_goes_on_where_write_stopped() -> None:
    reading, writing = os.pipe()
    content = os.urandom(300_000)  # more than a pipe holds
    received = bytearray()

    def read() -> None:
        while chunk := os.read(reading, 7_001):
            received.extend(chunk)

    thread = threading.Thread(target=read)
    thread.start()
    write_all(writing, memoryview(content))
    os.close(writing)
    thread.join()
    os.close(reading)
    assert received == content
