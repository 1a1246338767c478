"""`tfr run`, killed at any moment: no process lives on, and the next run completes and is byte-equal."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.waiting import wait_for

from .command import Copy, kill_session, make_copy, put_small, session
from .settings import cases, choices, need_time

_UNFINISHED = """
import dagster
for run in dagster.DagsterInstance.get().get_runs():
    if not run.is_finished:
        print(run.run_id, run.status.value)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return make_copy(tmp_path_factory.mktemp("project") / "copy")


def test_a_killed_run_never_blocks_the_next(copy: Copy) -> None:
    need_time()
    choose = choices("commands")
    started = time.monotonic()
    code, said = copy.run("run", "small")
    assert code == 0, said
    usual = time.monotonic() - started
    done = {0: copy.shards()}
    put_small(copy.root, 1)
    assert copy.run("run", "small")[0] == 0
    done[1] = copy.shards()
    for case in cases(short=1):
        version = case % 2  # other rows than those that are there
        put_small(copy.root, version)
        process = copy.start("run", "small")
        moment = usual * choose.choice((choose.random(), 0.3 + 0.7 * choose.random()))
        story = f"after {moment:.2f} s: {_wait_and_kill(process, moment, choose)}"
        try:
            _wait_for_end_of(process.pid)
            code, said = copy.run("run", "small")
            assert code == 0, said
            assert _unfinished(copy) == []
            assert copy.shards() == done[version]
        except BaseException as error:
            error.add_note(story)
            raise
        finally:
            kill_session(process.pid)


def _wait_for_end_of(leader: int) -> None:
    wait_for(lambda: not session(leader), 30, lambda: f"these live on: {session(leader)}")


def _wait_and_kill(process: "subprocess.Popen[str]", seconds: float, choose: random.Random) -> str:
    """Kills a command, its group or one of its processes; returns the story."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    number = choose.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT))
    there = sorted(session(process.pid).items())
    target = choose.choice(("command", "group", "another"))
    if not there:
        return "it had ended"
    victim, what = there[0]
    try:
        if target == "group":
            os.killpg(process.pid, number)
        else:
            if target == "another":
                victim, what = choose.choice(there)
                number = signal.SIGKILL
            os.kill(victim, number)
    except ProcessLookupError:
        return "it had ended"
    story = f"{number.name} to {target} {what[:200]}"
    if target == "another":
        process.wait(120)  # it says that one of its processes died
    return story


def _unfinished(copy: Copy) -> list[str]:
    """The runs that the copy's instance takes for running."""
    command = [sys.executable, "-c", _UNFINISHED]
    done = subprocess.run(command, cwd=copy.root, env=copy.environment, capture_output=True, text=True, check=True)
    return done.stdout.split()
