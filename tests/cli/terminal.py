"""A project with one small dataset, `tfr` in its terminal, and an instance on disk. Its source can be held up."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

import tfr_assets
from tests.memory import make_in_memory
from tests.waiting import wait_for

PACKAGE = Path(tfr_assets.__file__).parent
_SOURCE = """
import pathlib, time
HERE = pathlib.Path(__file__).parent

def rows():
    if (HERE / "fail").exists():
        raise ZeroDivisionError("nothing to share")
    while (HERE / "hold").exists():
        (HERE / "held").touch()
        try:
            time.sleep(0.02)
        except BaseException:
            if not (HERE / "stubborn").exists():
                raise
    return [{"n": n, "word": f"w{n}"} for n in range(100)]
"""
_YAML = """
type: tfr_assets.TFRecordDataset
attributes: {source: {callable: "slow_source:rows"}, shards: 2}
"""


@dataclass
class Terminal:
    """A project below `root`.

    Attributes:
        root: The project: `tfr_assets` is linked there, with a dataset `few` alone.
        env: Further environment variables.
    """

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        package = self.root / "tfr_assets"
        package.mkdir()
        for path in PACKAGE.iterdir():
            if path.name != "defs":
                (package / path.name).symlink_to(path)
        (package / "defs" / "few").mkdir(parents=True)
        (package / "defs" / "__init__.py").touch()
        (package / "defs" / "few" / "defs.yaml").write_text(_YAML)
        (self.root / "slow_source.py").write_text(_SOURCE)
        (self.root / "pyproject.toml").symlink_to(PACKAGE.parent / "pyproject.toml")
        make_in_memory(self.home, self)
        self.configure({"telemetry": {"enabled": False}})

    @property
    def home(self) -> Path:
        return self.root / "home"

    def configure(self, settings: dict[str, Any]) -> None:
        """Writes `dagster.yaml`."""
        (self.home / "dagster.yaml").write_text(yaml.safe_dump(settings))

    @property
    def hold(self) -> Path:
        """While this file is there, the source waits; `held` tells that it does."""
        return self.root / "hold"

    def environment(self) -> dict[str, str]:
        here = {"PYTHONPATH": str(self.root), "DAGSTER_HOME": str(self.home), "TFR_DATA": str(self.root / "data")}
        return {**os.environ, **here, "TFR_WORKERS": "2", **self.env}

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "tfr_assets.cli", *arguments],
            env=self.environment(),
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def tfr(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(*arguments)
        out, err = process.communicate(timeout=900)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start_held(self, *arguments: str) -> "subprocess.Popen[str]":
        """Starts a command and returns when its source waits."""
        self.hold.touch()
        (self.root / "held").unlink(missing_ok=True)
        process = self.start(*arguments)
        self.wait_until_held(process)
        return process

    def wait_until_held(self, process: "subprocess.Popen[str]") -> None:
        def held() -> bool:
            assert process.poll() is None, process.communicate()
            return (self.root / "held").exists()

        wait_for(held, 600)
        (self.root / "held").unlink()

    def instance(self) -> dg.DagsterInstance:
        return dg.DagsterInstance.from_config(str(self.home))

    def runs(self) -> list[dg.DagsterRun]:
        """The runs, the oldest first."""
        with self.instance() as instance:
            return list(instance.get_runs(ascending=True))

    def statuses(self) -> list[str]:
        return [run.status.value for run in self.runs()]


def kill_all(process: "subprocess.Popen[str]") -> None:
    """Kills a process that was started here, and all its descendants, at once."""
    for pid in _session(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()


def wait_until_gone(process: "subprocess.Popen[str]") -> None:
    """Waits until a process that ended has no descendant any more."""
    wait_for(lambda: not _session(process.pid), 60, lambda: str(_session(process.pid)))


def _session(leader: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session, *_ = path.read_text().rpartition(")")[2].split()
            if int(session) == leader and state != "Z":
                found.append(int(path.parent.name))
    return found
