"""Runs whose process is dead are ended, and nobody else's."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.waiting import wait_for
from tfr_assets.components.runs.dead_runs import alive, end_dead_runs, is_dead, is_stopped, keep_alive

Status = dg.DagsterRunStatus
_POOL = "measuring"
_PROCESS = """
import sys, time
from pathlib import Path
from tfr_assets.storage.locks import life_sign
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


_DIES_BEFORE_SUCCESS = """
import os, signal, sys
import dagster as dg
from dagster._core.events import DagsterEvent
from dagster._core.definitions.reconstruct import ReconstructableRepository
if __name__ == "__main__":
    DagsterEvent.job_success = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    with dg.DagsterInstance.local_temp(sys.argv[1], overrides={"telemetry": {"enabled": False}}) as instance:
        repository = ReconstructableRepository.for_module("short_jobs", "repository", sys.argv[1])
        dg.execute_job(repository.get_reconstructable_job("short"), instance)
"""
_SHORT_JOBS = """
import dagster as dg
from tfr_assets.components.runs.executor import build_executor
@dg.op
def work():
    pass
@dg.job(executor_def=build_executor())
def short():
    work()
@dg.repository
def repository():
    return [short]
"""


def test_a_process_that_dies_when_all_steps_are_over_is_noticed(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    (tmp_path / "short_jobs.py").write_text(_SHORT_JOBS)
    (tmp_path / "start.py").write_text(_DIES_BEFORE_SUCCESS)
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([root, str(tmp_path)])}
    ended = subprocess.run([sys.executable, tmp_path / "start.py", tmp_path], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    (run,) = instance.get_runs()
    assert run.status is Status.STARTED and is_dead(instance, run.run_id)
    assert [each.run_id for each in end_dead_runs(instance)] == [run.run_id]
    assert status(instance, run) is Status.FAILURE


def test_the_sign_of_a_run_stays_until_its_end_is_recorded(instance: dg.DagsterInstance) -> None:
    folder = Path(instance.root_directory) / "running"
    first, second = (instance.create_run_for_job(nothing, status=Status.STARTED) for _ in range(2))
    keep_alive(instance, first.run_id)
    keep_alive(instance, first.run_id)
    keep_alive(instance, second.run_id)
    assert {path.name for path in folder.iterdir()} == {first.run_id, second.run_id}
    for run in (first, second):
        instance.report_run_failed(run)
    third = instance.create_run_for_job(nothing, status=Status.STARTED)
    keep_alive(instance, third.run_id)
    assert [path.name for path in folder.iterdir()] == [third.run_id]
    assert end_dead_runs(instance) == []


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
