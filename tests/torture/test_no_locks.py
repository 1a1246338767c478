"""File systems that have no locks, or refuse them: what is written there is complete, or nothing is left behind."""

import os
import shutil
import subprocess
import sys
from errno import EIO, ENOLCK, ENOSYS, EOPNOTSUPP
from pathlib import Path

import pytest

from .command import make_copy
from .scenarios import SCENARIOS
from .truth import before_and_after, check_reading, meaning, put_tree, tree_of

_FLOCK = r"""
#include <errno.h>
#include <stdlib.h>
int flock(int file, int how) { errno = atoi(getenv("FLOCK_ERROR")); return -1; }
"""
_ACT = """
import sys
from pathlib import Path
from tests.torture.scenarios import act
for name in sys.argv[2:]:
    act(name, Path(sys.argv[1]) / name)
"""
_REFUSED = """
import os, sys
from pathlib import Path
from tfr_assets.errors import WriteError
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.sources.landing.landed import temporary_folder
folder = Path(sys.argv[1])
before = os.listdir("/proc/self/fd")
for _ in range(3):
    try:
        write_atomically(folder / "file", b"content")
    except WriteError as error:
        print(error)
    try:
        with temporary_folder(folder):
            print("made")
    except WriteError as error:
        print(error)
assert os.listdir("/proc/self/fd") == before
"""


@pytest.fixture(scope="module")
def no_locks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with which `flock` fails with the error `$FLOCK_ERROR`, always."""
    if not (compiler := shutil.which("gcc") or shutil.which("cc")):
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("flock")
    (folder / "flock.c").write_text(_FLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "flock.so", "flock.c"], cwd=folder, check=True)
    return folder / "flock.so"


def python(no_locks: Path, error: int, code: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "LD_PRELOAD": str(no_locks), "FLOCK_ERROR": str(error)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("error", [ENOLCK, EOPNOTSUPP, ENOSYS])
def test_without_locks_everything_is_written_with_one_warning(error: int, no_locks: Path, fast_folder: Path) -> None:
    done = {}
    for name in SCENARIOS:
        (fast_folder / name / "data").mkdir(parents=True)
        before, done[name] = before_and_after(name, fast_folder / name)
        put_tree(fast_folder / name / "data", before)
    ended = python(no_locks, error, _ACT, fast_folder, *SCENARIOS)
    assert ended.returncode == 0, ended.stderr
    for name, tree in done.items():
        data = fast_folder / name / "data"
        assert meaning(tree_of(data)) == meaning(tree), name
        assert check_reading(SCENARIOS[name], data) == "new", name
    warnings = [line for line in ended.stderr.splitlines() if "this file system has no locks" in line]
    assert len(warnings) == 1, warnings


def test_a_refused_lock_leaves_nothing_behind(no_locks: Path, tmp_path: Path) -> None:
    ended = python(no_locks, EIO, _REFUSED, tmp_path)
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout.splitlines()
    assert len(said) == 6 and all("Input/output error" in line and str(tmp_path) in line for line in said), said
    assert not list(tmp_path.iterdir())


def test_a_run_without_locks_succeeds_and_its_log_says_so(no_locks: Path, tmp_path: Path) -> None:
    copy = make_copy(tmp_path / "copy")
    copy.settings.update(LD_PRELOAD=str(no_locks), FLOCK_ERROR=str(ENOLCK))
    code, said = copy.run("run", "small")
    assert code == 0, said
    assert copy.run("verify", "small")[0] == 0
    command = "import dagster as dg\nfor run in dg.DagsterInstance.get().get_runs():\n"
    command += "    for log in dg.DagsterInstance.get().all_logs(run.run_id): print(log.message)"
    logs = subprocess.run(
        [sys.executable, "-c", command], cwd=copy.root, env=copy.environment, capture_output=True, text=True, check=True
    )
    assert "cannot lock small, so another run may write at the same time" in logs.stdout
