"""Runs whose process is dead are ended, and nobody else's."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.waiting import wait_for
from tfr_assets.components.runs import alive, end_dead_runs, is_dead, is_stopped

Status = dg.DagsterRunStatus
_POOL = "measuring"
_PROCESS = """
import sys, time
from pathlib import Path
from tfr_assets.components.locks import life_sign
with life_sign(Path(sys.argv[1])):
    time.sleep(600)
"""


@dg.job
def nothing() -> None:
    pass


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides={"telemetry": {"enabled": False}}) as made:
        yield made


def begin(instance: dg.DagsterInstance, kill: bool, status: Status = Status.STARTED) -> dg.DagsterRun:
    """Returns a run that a real process executes, or executed until it was killed."""
    run = instance.create_run_for_job(nothing, status=status)
    sign = Path(instance.root_directory) / "running" / run.run_id
    process = subprocess.Popen([sys.executable, "-c", _PROCESS, str(sign)])
    wait_for(sign.exists)
    if kill:
        process.kill()
        process.wait()
    else:
        _processes.append(process)
    return run


_processes: list["subprocess.Popen[bytes]"] = []


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    while _processes:
        process = _processes.pop()
        process.kill()
        process.wait()


def status(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Status:
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


def test_only_runs_of_dead_processes_are_ended_and_told_why(instance: dg.DagsterInstance) -> None:
    killed, canceling = begin(instance, kill=True), begin(instance, kill=True, status=Status.CANCELING)
    living, elsewhere = begin(instance, kill=False), instance.create_run_for_job(nothing, status=Status.STARTED)
    done = begin(instance, kill=True, status=Status.SUCCESS)
    assert [is_dead(instance, run.run_id) for run in (killed, living, elsewhere)] == [True, False, False]
    assert {run.run_id for run in end_dead_runs(instance)} == {killed.run_id, canceling.run_id}
    found = [status(instance, run) for run in (killed, canceling, living, elsewhere, done)]
    assert found == [Status.FAILURE, Status.CANCELED, Status.STARTED, Status.STARTED, Status.SUCCESS]
    (said,) = instance.all_logs(killed.run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    assert "the process of this run is dead" in said.message
    assert [path.name for path in (Path(instance.root_directory) / "running").iterdir()] == [living.run_id]
    assert end_dead_runs(instance) == []


def test_the_places_of_dead_runs_in_pools_are_free_again(instance: dg.DagsterInstance) -> None:
    killed, living = begin(instance, kill=True), begin(instance, kill=False)
    storage = instance.event_log_storage
    storage.set_concurrency_slots(_POOL, 2)
    for run in (killed, living):
        assert storage.claim_concurrency_slot(_POOL, run.run_id, "step").is_claimed
    waiting = instance.create_run_for_job(nothing)
    assert not storage.claim_concurrency_slot(_POOL, waiting.run_id, "step").is_claimed
    end_dead_runs(instance)
    assert storage.claim_concurrency_slot(_POOL, waiting.run_id, "step").is_claimed
    assert living.run_id in storage.get_concurrency_run_ids()


def test_the_process_that_executes_a_run_shows_that_it_is_alive_and_whether_it_was_stopped(
    instance: dg.DagsterInstance,
) -> None:
    run = instance.create_run_for_job(nothing, status=Status.STARTED)
    with alive(instance, run.run_id, stopped=lambda: True), alive(instance, run.run_id):
        assert end_dead_runs(instance) == []
        assert is_stopped(run.run_id)
    assert not is_stopped(run.run_id)
    assert not list((Path(instance.root_directory) / "running").iterdir())


def test_a_run_that_cannot_show_that_it_is_alive_is_executed_all_the_same(instance: dg.DagsterInstance) -> None:
    (Path(instance.root_directory) / "running").write_text("a file, where a folder is wanted")
    run = instance.create_run_for_job(nothing, status=Status.STARTED)
    with alive(instance, run.run_id):
        assert not is_dead(instance, run.run_id)
        assert end_dead_runs(instance) == []
    assert status(instance, run) is Status.STARTED
