"""Life signs and locks, between real processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_for
from tfr_assets.components.locks import if_dead, life_sign, lock, locked, unlock

_HOLD = """
import sys, time
from pathlib import Path
from tfr_assets.components.locks import {how}
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
    with if_dead(path) as dead:
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
    with if_dead(path) as first:
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
    process, _ = hold("locked", path)
    assert lock(path, wait=False) is None
    process.kill()
    process.wait()
    file = lock(path, wait=False)
    assert file is not None
    assert lock(path, wait=False) is None  # also not twice in one process
    unlock(file)
    with locked(path):
        assert lock(path, wait=False) is None
