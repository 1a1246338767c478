"""Life signs and locks, between real processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_for
from tfr_assets.storage.locks import (
    hold_lock,
    if_abandoned,
    life_sign,
    lock,
    make_locked_folder,
    remove_abandoned_folders,
    remove_locked_folder,
    unlock,
)

_HOLD = """
import sys, time
from pathlib import Path
from tfr_assets.storage.locks import {how}
with {how}(Path(sys.argv[1])):
    Path(sys.argv[2]).touch()
    while Path(sys.argv[2]).exists():
        time.sleep(0.01)
"""


def hold(how: str, path: Path) -> "tuple[subprocess.Popen[bytes], Path]":
    """Starts a process that holds a lock until the returned file is removed."""
    held = path.parent.parent / "held"
    process = subprocess.Popen([sys.executable, "-c", _HOLD.format(how=how), str(path), str(held)])
    wait_for(held.exists)
    return process, held


def is_dead(path: Path) -> bool:
    with if_abandoned(path) as dead:
        return dead


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "signs").mkdir()
    return tmp_path / "signs" / "one"


def test_a_killed_process_is_dead_and_one_that_ended_leaves_nothing(path: Path) -> None:
    assert not is_dead(path)  # nothing is known
    process, held = hold("life_sign", path)
    assert not is_dead(path)
    held.unlink()
    process.wait()
    assert not is_dead(path)
    assert not list(path.parent.iterdir())
    process, held = hold("life_sign", path)
    process.kill()
    process.wait()
    assert is_dead(path)
    with if_abandoned(path) as first:
        assert first and not is_dead(path)  # one ends the run, not two
        path.unlink()
    assert not is_dead(path)


def test_a_block_that_raises_counts_as_alive_until_its_process_ends(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), life_sign(path):
        _ = 1 / 0
    assert not is_dead(path)
    code = _HOLD.format(how="life_sign").replace("Path(sys.argv[2]).touch()", "1 / 0")
    ended = subprocess.run([sys.executable, "-c", code, str(path)], stderr=subprocess.DEVNULL, check=False)
    assert ended.returncode == 1
    assert is_dead(path)


@pytest.mark.parametrize("folder", [False, True])
def test_a_lock_is_held_by_one_and_freed_by_a_kill(folder: bool, path: Path) -> None:
    if folder:
        path.mkdir()
    process, _ = hold("hold_lock", path)
    assert lock(path, wait=False) is None
    process.kill()
    process.wait()
    file = lock(path, wait=False)
    assert file is not None
    assert lock(path, wait=False) is None  # also not twice in one process
    unlock(file)
    with hold_lock(path):
        assert lock(path, wait=False) is None


def test_a_folder_is_never_taken_for_abandoned_between_its_making_and_its_lock(tmp_path: Path) -> None:
    """One process makes folders and needs them; another removes abandoned ones all the time."""
    code = """
import sys
from pathlib import Path
from tfr_assets.storage.locks import remove_abandoned_folders
print("removing", flush=True)
while True:
    remove_abandoned_folders(Path(sys.argv[1]), ".work-")
"""
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as remover:
        try:
            assert remover.stdout and remover.stdout.readline() == b"removing\n"
            for _ in range(500):
                file, folder = make_locked_folder(tmp_path, ".work-")
                (folder / "one").mkdir()
                (folder / "one" / "two").touch()
                assert (folder / "one" / "two").exists()
                remove_locked_folder(file, folder)
        finally:
            remover.kill()
    assert not list(tmp_path.iterdir())


def test_a_folder_of_a_killed_process_is_removed_and_another_one_is_not(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from tfr_assets.storage.locks import make_locked_folder
file, folder = make_locked_folder(Path(sys.argv[1]), ".work-")
(folder / "half").touch()
print("made", flush=True)
time.sleep(600)
"""
    file, mine = make_locked_folder(tmp_path, ".work-")
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as killed:
        assert killed.stdout and killed.stdout.readline() == b"made\n"
        remove_abandoned_folders(tmp_path, ".work-")
        assert len(list(tmp_path.iterdir())) == 2
        killed.kill()
    remove_abandoned_folders(tmp_path, ".work-")
    assert list(tmp_path.iterdir()) == [mine]
    remove_locked_folder(file, mine)
