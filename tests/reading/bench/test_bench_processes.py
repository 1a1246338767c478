"""Fresh processes are fresh, are watched, and never outlive whoever asked for them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_for
from tfr_assets.bench.process.fresh import FreshProcesses, ProcessFailed, fresh_processes
from tfr_assets.errors import ConfigError

TASKS = "tests.reading.bench.tasks"
_SCRIPT = """
import sys
from tfr_assets.bench.process.fresh import fresh_processes
with fresh_processes([]) as processes:
    processes.run("tests.reading.bench.tasks:wait_with_a_child", sys.argv[1])
"""


@pytest.fixture(scope="module")
def processes() -> Iterator[FreshProcesses]:
    with fresh_processes(["json"]) as made:
        yield made


def test_every_task_has_a_process_of_its_own(processes: FreshProcesses) -> None:
    pids = [processes.run("os:getpid")[0] for _ in range(3)]
    assert len({*pids, os.getpid()}) == 4
    assert all(not alive(pid) for pid in pids)


def test_arguments_and_results_travel(processes: FreshProcesses) -> None:
    values = {"a": [1, None, "ü"], "large": "x" * 1_000_000}
    assert processes.run("json:loads", json.dumps(values))[0] == values


def test_open_descriptors_and_memory_are_seen(processes: FreshProcesses, tmp_path: Path) -> None:
    few = processes.run(f"{TASKS}:open_files", str(tmp_path), 3)[1].descriptors
    many = processes.run(f"{TASKS}:open_files", str(tmp_path), 43)[1].descriptors
    assert many == few + 40
    small = processes.run(f"{TASKS}:take_memory", 1)[1].peak_memory_bytes
    large = processes.run(f"{TASKS}:take_memory", 101)[1].peak_memory_bytes
    assert large - small == pytest.approx(100 << 20, rel=0.1)


def test_a_users_error_arrives_as_it_is(processes: FreshProcesses) -> None:
    with pytest.raises(ConfigError, match=r"readers\.batch_size: expected a whole number"):
        processes.run("tfr_assets.bench.readers.options:BenchOptions", 0)


def test_any_other_error_arrives_with_its_trace(processes: FreshProcesses) -> None:
    with pytest.raises(ProcessFailed, match=r"JSONDecodeError: Expecting(.|\n)*Traceback"):
        processes.run("json:loads", "{")


@pytest.mark.parametrize(
    ("place", "argument", "how"), [("os:_exit", 3, "exit code 3"), ("signal:raise_signal", signal.SIGKILL, "SIGKILL")]
)
def test_a_process_that_dies_is_told_of(processes: FreshProcesses, place: str, argument: int, how: str) -> None:
    with pytest.raises(ProcessFailed, match=how):
        processes.run(place, argument)
    assert processes.run("os:getpid")[0]  # the next one is none the worse for it


def test_a_module_that_is_not_there_is_told_of() -> None:
    with (
        pytest.raises(ProcessFailed, match=r"(?s)ended at once.*No module named 'no_such_module'"),
        fresh_processes(["no_such_module"]),
    ):
        pass


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nobody_outlives_whoever_asked(tmp_path: Path, how: signal.Signals) -> None:
    told = tmp_path / "pids"
    command = [sys.executable, "-c", _SCRIPT, str(told)]
    asking = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for(told.exists)
    pids = [int(pid) for pid in told.read_text().split()]
    assert all(map(alive, pids))
    asking.send_signal(how)
    asking.wait(20)
    wait_for(lambda: not any(map(alive, pids)))


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # whoever adopted it has yet to notice
