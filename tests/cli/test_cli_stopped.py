"""Runs of a terminal that are stopped, killed, or meet each other."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import dagster as dg
import pytest

from tests.cli.terminal import Terminal, kill_all, wait_until_gone
from tests.waiting import wait_for


@pytest.fixture(scope="module")
def module_terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    return Terminal(tmp_path_factory.mktemp("terminal"))


@pytest.fixture
def terminal(module_terminal: Terminal) -> Iterator[Terminal]:
    yield module_terminal
    for name in ("hold", "held", "fail", "stubborn"):
        (module_terminal.root / name).unlink(missing_ok=True)


@pytest.mark.parametrize("group", [False, True], ids=["process", "group"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["int", "term", "hup"]
)
def test_a_stopped_run_is_canceled_and_tells_by_which_signal(
    terminal: Terminal, number: signal.Signals, code: int, group: bool
) -> None:
    process = terminal.start_held("run", "few")
    (os.killpg if group else os.kill)(process.pid, number)
    _, err = process.communicate(timeout=900)
    assert process.returncode == code, err
    assert "interrupted; run again" in err and "failed" not in err
    assert terminal.runs()[-1].status is dg.DagsterRunStatus.CANCELED
    assert not list((terminal.home / "running").iterdir())
    wait_until_gone(process)


def test_an_impatient_ctrl_c_changes_nothing(terminal: Terminal) -> None:
    process = terminal.start_held("run", "few")
    while process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.3)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert terminal.runs()[-1].status is dg.DagsterRunStatus.CANCELED
    wait_until_gone(process)


def test_a_step_that_ignores_the_interrupt_is_killed(terminal: Terminal) -> None:
    (terminal.root / "stubborn").touch()
    process = terminal.start_held("run", "few")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=900)
    assert process.returncode == 130, err
    assert "interrupted; run again" in err and "failed" not in err and "Traceback" not in err
    assert terminal.runs()[-1].status is dg.DagsterRunStatus.CANCELED
    wait_until_gone(process)


def test_a_killed_run_is_ended_by_the_next_one(terminal: Terminal) -> None:
    process = terminal.start_held("run", "few")
    kill_all(process)
    killed = terminal.runs()[-1]
    assert killed.status is dg.DagsterRunStatus.STARTED
    terminal.hold.unlink()
    done = terminal.tfr("run", "few")
    assert done.returncode == 0, done.stderr
    with terminal.instance() as instance:
        assert instance.get_run_by_id(killed.run_id).status is dg.DagsterRunStatus.FAILURE
        (said,) = [log.message for log in instance.all_logs(killed.run_id, of_type=dg.DagsterEventType.RUN_FAILURE)]
    assert "the process of this run is dead" in said
    assert not list((terminal.home / "running").iterdir())


def test_two_runs_of_a_dataset_wait_for_each_other_and_say_so(terminal: Terminal) -> None:
    first = terminal.start_held("run", "few")
    run_id = terminal.runs()[-1].run_id
    second = terminal.start("run", "few")
    with terminal.instance() as instance:

        def waits() -> bool:
            assert second.poll() is None, second.communicate()
            (run,) = instance.get_runs(limit=1)
            logs = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
            return run.run_id != run_id and f"waiting for run {run_id[:8]}, which is working on few" in "".join(
                log.message for log in logs
            )

        wait_for(waits, 600)
    assert not (terminal.root / "held").exists() or first.poll() is None
    terminal.hold.unlink()
    for process in (first, second):
        _, err = process.communicate(timeout=900)
        assert process.returncode == 0, err
    assert terminal.statuses()[-2:] == ["SUCCESS", "SUCCESS"]


def test_an_unexpected_error_is_told_with_its_cause(terminal: Terminal) -> None:
    (terminal.root / "fail").touch()
    done = terminal.tfr("run", "few")
    assert done.returncode == 1
    assert "nothing to share" in done.stderr
    assert "Traceback" not in done.stderr
