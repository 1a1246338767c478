"""Disks that are full, out of inodes, limited or read-only: an error that names a file, nothing torn, a rerun heals."""

import resource
import traceback
from pathlib import Path

import pytest

from tfr_assets.errors import TfrError, WriteError

from .disks import remount, small_disk
from .scenarios import SCENARIOS, act
from .settings import cases, choices
from .traced import run_forked
from .truth import (
    before_and_after,
    check_reading,
    check_recovery,
    check_vouching,
    check_whole,
    meaning,
    put_tree,
    tree_of,
)

BLOCK = 4096


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_disk_may_be_full_at_any_moment(name: str, tmp_path: Path) -> None:
    scenario, choose = SCENARIOS[name], choices(f"disk {name}")
    with small_disk(tmp_path / "data") as data:
        before, done = before_and_after(name, tmp_path)
        refused = 0
        for case in cases(short=4):
            put_tree(data, before)
            if choose.random() < 0.7 or case == 0:
                more = choose.randint(0, 12) if case else 0
                room = f"size={BLOCK * max(1, _used_blocks(data) + more)}"
            else:
                room = f"nr_inodes={_used_inodes(data) + choose.randint(0, 6)}"
            remount(data, room)
            said = _error_of(name, tmp_path)
            refused += said is not None
            try:
                assert said is None or isinstance(said, TfrError), repr(said)
                assert said is None or "No space left on device" in str(said)
                check_whole(tree_of(data), before, done)
                check_vouching(data)
                check_reading(scenario, data)
                assert not list(data.rglob("*.tmp")), "a temporary file was left"
                assert said is None or meaning(tree_of(data)) != meaning(done) or room.startswith("nr")
                remount(data, "size=64m,nr_inodes=10000")
                act(name, tmp_path)
                assert meaning(tree_of(data)) == meaning(done), "running again does not complete it"
            except BaseException as error:
                error.add_note(f"{room}; it said {''.join(traceback.format_exception(said)) if said else said}")
                raise
            remount(data, "size=64m,nr_inodes=10000")
        assert refused


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_disk_may_be_read_only(name: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "data") as data:
        before, done = before_and_after(name, tmp_path)
        put_tree(data, before)
        remount(data, "ro")
        said = _error_of(name, tmp_path)
        assert isinstance(said, WriteError), repr(said)
        assert "Read-only file system" in str(said) and str(data) in str(said)
        assert tree_of(data) == before
        check_reading(SCENARIOS[name], data)
        remount(data, "rw")
        act(name, tmp_path)
        assert meaning(tree_of(data)) == meaning(done)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_process_may_be_limited_in_the_size_of_files(name: str, fast_folder: Path) -> None:
    choose, data = choices(f"limit {name}"), fast_folder / "data"
    data.mkdir()
    before, done = before_and_after(name, fast_folder)
    for _ in cases(short=2):
        put_tree(data, before)
        size = choose.randint(0, max(map(len, done.values())))
        ended = run_forked(_limited, size, name, fast_folder)
        kind, said = ended.error or (None, "")
        try:
            assert kind is None or (issubclass(kind, TfrError) and "File too large" in said), (kind, said)
            check_recovery(name, fast_folder, data, before, done)
        except BaseException as error:
            error.add_note(f"at most {size} bytes; it said {said!r}")
            raise


def _limited(size: int, name: str, root: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    act(name, root)


def _error_of(name: str, root: Path) -> BaseException | None:
    try:
        act(name, root)
    except Exception as error:
        return error
    return None


def _used_blocks(folder: Path) -> int:
    return sum(-(-path.stat().st_size // BLOCK) for path in folder.rglob("*") if path.is_file())


def _used_inodes(folder: Path) -> int:
    return 1 + sum(1 for _ in folder.rglob("*"))
