"""The `tfr` command in a copy of the project that has one small dataset, `small`, and everything of its own."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from tests.waiting import wait_for

from .scenarios import table
from .truth import Tree, meaning, tree_of

PROJECT = Path(__file__).parents[2]
SHARDS = 6
NOBODY = 65534
_MADE = ("raw", "shards", "merged")
_GROUPS = Path("/sys/fs/cgroup")
_OPEN = """
python=$1 closed=$2; shift 2
mount --bind "$python" /mnt
mount -t tmpfs -o mode=755 tmpfs "$closed"
mkdir -p "$python"
mount --move /mnt "$python"
exec "$@"
"""
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".dagster", "data", "raw", "tests", "*.egg-info", ".*_cache", ".hypothesis", "defs"
)  # fmt: skip
_YAML = """
type: tfr_assets.TFRecordDataset
attributes:
  source: small.parquet
  shards: {shards}
"""


@dataclass(frozen=True)
class Copy:
    """A copy of the project.

    Attributes:
        root: Where it is.
        settings: Of its commands' environment.
        log: The file in `root` to which they write.
    """

    root: Path
    settings: dict[str, str] = field(default_factory=dict)
    log: str = "log"

    @property
    def data(self) -> Path:
        """The folder of the dataset."""
        return self.root / "data" / "small"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its commands."""
        own = {"PYTHONPATH": str(self.root), "DAGSTER_HOME": str(self.root), "TFR_DATA": "", "TFR_WORKERS": "2"}
        return {**os.environ, **own, "DAGSTER_DISABLE_TELEMETRY": "1", **self.settings}

    def start(self, *arguments: str, before: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
        """Starts `tfr` in a session of its own; `before` is what starts it, such as `setpriv`."""
        command = [*before, sys.executable, "-m", "tfr_assets.cli", *arguments]
        log = (self.root / self.log).open("w")
        return subprocess.Popen(
            command, cwd=self.root, env=self.environment, stdout=log, stderr=log, text=True, start_new_session=True
        )

    def run(self, *arguments: str, before: tuple[str, ...] = ()) -> tuple[int, str]:
        """Runs `tfr`; returns its exit code and all it wrote."""
        process = self.start(*arguments, before=before)
        try:
            return process.wait(300), self.said()
        finally:
            kill_session(process.pid)

    def said(self) -> str:
        """What its last command wrote."""
        return (self.root / self.log).read_text()

    def shards(self) -> Tree:
        """What there is of the dataset: inventory, shards, merged file."""
        return {name: content for name, content in meaning(tree_of(self.data)).items() if name.split("/")[0] in _MADE}


def make_copy(root: Path, version: int = 0) -> Copy:
    """Copies the project, with the dataset `small`."""
    shutil.copytree(PROJECT, root, ignore=_LEFT_OUT, dirs_exist_ok=True)
    (root / "tfr_assets" / "defs" / "small").mkdir(parents=True)
    (root / "tfr_assets" / "defs" / "__init__.py").touch()
    put_plan(root, SHARDS)
    put_small(root, version)
    return Copy(root)


def put_plan(root: Path, shards: int) -> None:
    """Writes the dataset's YAML."""
    (root / "tfr_assets" / "defs" / "small" / "defs.yaml").write_text(_YAML.format(shards=shards))


def put_small(root: Path, version: int) -> None:
    """Writes the raw data."""
    pq.write_table(table(version), root / "small.parquet", row_group_size=5)


def session(leader: int) -> dict[int, str]:
    """The processes of a session that live, and what they are."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if folder.name.isdigit() and int(fields[3]) == leader and fields[0] != "Z":
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, IndexError):
            continue  # it ended meanwhile
    return found


def kill_session(leader: int) -> None:
    """Kills all processes of a session."""
    for process in session(leader):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    wait_for(lambda: not session(leader), 30)


def as_nobody() -> tuple[str, ...]:
    """Returns what starts a command as a user who owns nothing; skips the test where that cannot be.

    Where Python lies below a folder that is closed to others, such as /root, that folder is replaced for the command by
    one that has nothing but Python in it.
    """
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root, with setpriv, can become somebody else")
    way: tuple[str, ...] = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    python = Path(sys.base_prefix)
    if closed := [folder for folder in python.parents if not folder.stat().st_mode & 0o001]:
        way = ("unshare", "--mount", "sh", "-ec", _OPEN, "sh", str(python), str(closed[-1]), *way)
    done = subprocess.run([*way, sys.executable, "-c", ""], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nobody else can start this Python: {done.stderr[:200]}")
    return way


@contextmanager
def limited_memory(limit: int) -> Iterator[tuple[str, ...]]:
    """Yields what starts a command with all its processes in a control group of so many bytes of memory."""
    group, setting = _GROUPS / "memory" / f"tfr-{uuid4().hex}", "memory.limit_in_bytes"
    if not group.parent.is_dir():
        group, setting = _GROUPS / group.name, "memory.max"
    try:
        group.mkdir()
        (group / setting).write_text(str(limit))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield ("sh", "-c", f'echo $$ > {group / "cgroup.procs"} && exec "$@"', "sh")
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), 60)
        group.rmdir()
