"""The executor: workers that take step after step, what Dagster promises of steps, and what is said of dying ones."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from textwrap import dedent

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from tests.waiting import wait_for
from tfr_assets.components.runs.steps.crew import PRELOAD, Crew, prepare, stop_prepared
from tfr_assets.components.runs.steps.fork_server import Template, TemplateDied, close_server
from tfr_assets.layout import shard_keys

from .conftest import SHARDS
from .project import OVERRIDES, Project, Ran, start_run

KEYS = shard_keys("train", SHARDS)
SECONDS = 10  # within which nothing of a killed run may be left
TORTURE = float(os.environ.get("TFR_TORTURE_SECONDS", "0"))  # for more than a few kills

_JOBS = """
import os
import signal
import time
from pathlib import Path

import dagster as dg

from tfr_assets.components.runs.executor import build_executor

HERE = Path(__file__).parent


def note(line):
    with (HERE / "notes").open("a") as file:
        file.write(f"{line} {os.getpid()}\\n")


@dg.op(out=dg.DynamicOut(int))
def spread():
    for number in range(6):
        yield dg.DynamicOutput(number, str(number))


@dg.op
def double(context, number):
    print("doubling", number)
    note("double")
    return 2 * number


@dg.op(pool="narrow")
def alone(number):
    note("in")
    time.sleep(0.1)
    note("out")
    return number


@dg.op(retry_policy=dg.RetryPolicy(max_retries=1))
def dies_once():
    if not (HERE / "died").exists():
        (HERE / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)


@dg.op
def asks_for_another_attempt(context):
    if context.retry_number == 0:
        raise dg.RetryRequested(max_retries=1)


@dg.op
def total(numbers):
    return sum(numbers)


@dg.op
def exits():
    os._exit(3)


@dg.op
def crashes():
    os.kill(os.getpid(), signal.SIGSEGV)


@dg.op
def fails():
    raise ValueError("no")


@dg.op(ins={"start": dg.In(dg.Nothing)})
def after_it():
    pass


@dg.op
def waits():
    (HERE / "waiting").touch()
    try:
        time.sleep(600)
    finally:
        note("tidied")


@dg.op
def absorbs():
    while True:
        try:
            (HERE / "waiting").touch()
            time.sleep(600)
        except BaseException:
            note("absorbed")


@dg.op
def is_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    (HERE / "waiting").touch()
    time.sleep(600)


@dg.op
def closes_all():
    os.closerange(3, 10_000)
    time.sleep(600)


@dg.job(executor_def=build_executor())
def everything():
    total(spread().map(lambda number: alone(double(number))).collect())
    dies_once()
    asks_for_another_attempt()


@dg.job(executor_def=build_executor())
def mishaps():
    exits()
    crashes()
    after_it(fails())


@dg.job(executor_def=build_executor())
def silence():
    closes_all()


@dg.job(executor_def=build_executor())
def stubbornness():
    absorbs()


@dg.job(executor_def=build_executor())
def deafness():
    is_deaf()


@dg.job(executor_def=build_executor())
def patience():
    waits()


@dg.repository
def repository():
    return [everything, mishaps, silence, patience, stubbornness, deafness]
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Ran]]:
    """Runs one of the jobs above; the instance lies in `tmp_path`, and so do their notes."""
    name = f"jobs_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(_JOBS)
    monkeypatch.syspath_prepend(tmp_path)
    repository = ReconstructableRepository.for_module(name, "repository", str(tmp_path))
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=OVERRIDES) as instance:
        instance.event_log_storage.set_concurrency_slots("narrow", 1)

        def execute(job: str) -> Ran:
            config = {"execution": {"config": {"max_concurrent": 3}}}
            with dg.execute_job(repository.get_reconstructable_job(job), instance, run_config=config) as result:
                of_run = instance.get_run_by_id(result.run_id)
                assert of_run
                logs = instance.all_logs(result.run_id)
                return Ran(of_run, [log.dagster_event for log in logs if log.dagster_event])

        yield execute


def test_steps_are_what_they_are_with_dagsters_own_executor(run: Callable[[str], Ran], tmp_path: Path) -> None:
    ran = run("everything")
    assert ran.ok, ran.problems()
    notes = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    assert [note for note, _ in notes if note != "double"] == ["in", "out"] * 6  # a pool with one place
    # three workers, one in place of the killed one, and on a busy machine three that were forked too early to be kept
    assert len({pid for _, pid in notes}) <= 7
    assert sorted(ran.steps("STEP_UP_FOR_RETRY")) == ["asks_for_another_attempt", "dies_once"]
    assert len(ran.steps("STEP_SUCCESS")) == 16
    captured = [path.read_text() for path in (tmp_path / "storage" / ran.run.run_id / "compute_logs").glob("*.out")]
    assert sum("doubling" in text for text in captured) == 6  # of each step apart


def test_a_step_that_ends_its_process_fails_alone_and_is_told_of_in_words(run: Callable[[str], Ran]) -> None:
    ran = run("mishaps")
    assert not ran.ok
    said = ran.problems()
    assert sorted(said) == ["crashes", "exits", "fails"]  # what comes after it was not executed
    assert "step exits: its process" in said["exits"] and "ended with exit code 3" in said["exits"]
    assert "was killed by signal 11 (SIGSEGV)" in said["crashes"] and "compiled code" in said["crashes"]
    assert "ValueError: no" in said["fails"]
    assert not any("Exception" in text for text in (said["exits"], said["crashes"]))


def test_an_interrupt_reaches_the_steps_once_and_leaves_no_process(tmp_path: Path) -> None:
    process = start_patience(tmp_path)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert (tmp_path / "notes").read_text().split()[0] == "tidied"
    wait_for(partial(is_over, tmp_path), SECONDS)
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=OVERRIDES) as instance:
        (run,) = instance.get_runs()
        errors = [log.dagster_event for log in instance.all_logs(run.run_id, dg.DagsterEventType.RUN_FAILURE)]
    assert [event.job_failure_data.error.cls_name for event in errors if event] == ["DagsterExecutionInterruptedError"]


@pytest.mark.parametrize("job", ["stubbornness", "deafness"])
def test_a_step_that_does_not_end_when_interrupted_is_killed(job: str, tmp_path: Path) -> None:
    not_long = "import tfr_assets.components.runs.steps.crew as crew; crew.PATIENCE = 2.0"
    process = start_patience(tmp_path, job=job, setup=not_long)
    process.send_signal(signal.SIGINT)
    process.wait(100)
    wait_for(partial(is_over, tmp_path), SECONDS)
    (said,) = what_failed(tmp_path)
    assert "it was interrupted, and did not end in time" in said and "memory" not in said


def test_a_second_interrupt_kills_at_once(tmp_path: Path) -> None:
    for_ever = "import tfr_assets.components.runs.steps.crew as crew; crew.PATIENCE = 3600"
    process = start_patience(tmp_path, job="stubbornness", setup=for_ever)

    def ended() -> bool:
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        return process.poll() is not None

    wait_for(ended, 100)
    wait_for(partial(is_over, tmp_path), SECONDS)
    assert (tmp_path / "notes").read_text().count("absorbed") == 1  # it was interrupted once, and then killed
    assert "it was interrupted, and did not end in time" in what_failed(tmp_path)[0]


def test_a_worker_that_closes_its_connection_and_lives_on_is_killed(run: Callable[[str], Ran]) -> None:
    ran = run("silence")
    assert not ran.ok
    assert "it closed its connection to the run, and did not end" in ran.problems()["closes_all"]


def test_a_run_may_have_thousands_of_open_files(run: Callable[[str], Ran]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1500:
        pytest.skip("so many files cannot be opened here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1500), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]  # `select` knows those below 1024
    try:
        said = run("mishaps").problems()
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "ended with exit code 3" in said["exits"] and "SIGSEGV" in said["crashes"]


def server_of(pid: int) -> int:
    """The process of a run's process that has imported what steps need."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (server,) = [child for child in children if "steps.template" in Path(f"/proc/{child}/cmdline").read_text()]
    return int(server)


def template_of(pid: int) -> int:
    """The process that the workers of a run are forked from."""
    (template,) = children_of(server_of(pid))
    return template


def children_of(pid: int) -> list[int]:
    """The processes that a process without threads has forked."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("victim", [None, server_of, template_of])
def test_no_process_is_left_when_one_above_it_is_killed(victim: Callable[[int], int] | None, tmp_path: Path) -> None:
    process = start_patience(tmp_path)
    os.kill(process.pid if victim is None else victim(process.pid), signal.SIGKILL)
    process.wait(60)
    wait_for(partial(is_over, tmp_path), SECONDS)
    if victim:
        (said,) = what_failed(tmp_path)
        assert "the process that the workers are forked from was killed by signal 9 (SIGKILL)" in said


def test_a_killed_worker_says_which_step_which_signal_and_what_to_do(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("starved")
    project.fault(KEYS[1], "kill")
    ran = project.refresh(name, SHARDS)
    (said,) = ran.problems().values()
    assert f"{name}__shards.write_shard[train_00001_of_00004]: its process" in said
    assert "killed by signal 9 (SIGKILL), most likely by the system because memory ran out" in said
    assert "TFR_WORKERS=1" in said and "launch the run again" in said
    assert "ChildProcessCrashException" not in str(ran.events)


@pytest.mark.parametrize("victim", [server_of, template_of])
def test_a_killed_template_is_no_interrupt_and_the_next_steps_have_another(
    victim: Callable[[int], int], project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("uprooted")
    faults = [project.fault(key, "wait") for key in KEYS[:2]]
    process = start_run(project, f"Refresh_{name}", KEYS)
    wait_for(lambda: all(Path(f"{fault}.waiting").exists() for fault in faults), 200)
    os.kill(victim(process.pid), signal.SIGKILL)
    assert process.wait(200) == 0
    for fault in faults:  # not before: a worker that goes on may record its shard yet
        fault.unlink()
    ran = project.ran(project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0].run_id)
    assert ran.run.status is dg.DagsterRunStatus.FAILURE
    said = ran.problems()
    assert sorted(said) == [f"write_shard[{key.replace('-', '_')}]" for key in KEYS[:2]]
    for text in said.values():
        assert "the process that the workers are forked from was killed by signal 9 (SIGKILL)" in text
        assert "nterrupt" not in text
    assert set(ran.materialized("shards")) == set(KEYS[2:])  # by a new template


def test_an_edit_in_mid_run_changes_nothing_for_the_run(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("edited")
    fault = project.fault(KEYS[0], "wait")
    process = start_run(project, f"Refresh_{name}", KEYS)
    wait_for(lambda: Path(f"{fault}.waiting").exists(), 200)
    (project.root / project.package / "defs" / name / "defs.yaml").write_text("type: [no, such, thing")
    fault.unlink()
    assert process.wait(200) == 0
    ran = project.ran(project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0].run_id)
    assert ran.ok, ran.problems()
    project.dataset(name, shards=SHARDS)


@pytest.mark.skipif(not TORTURE, reason="set TFR_TORTURE_SECONDS to kill at random for so long")
def test_whatever_is_killed_whenever_nothing_is_left(tmp_path: Path) -> None:
    chance = random.Random(os.environ.get("TFR_TORTURE_SEED", "1"))
    end = time.monotonic() + TORTURE
    for number in range(1000):
        if number >= 50 and time.monotonic() > end:
            break
        folder = tmp_path / str(number)
        folder.mkdir()
        process = start_patience(folder, wait=False)
        time.sleep(chance.uniform(0, 6))
        # not the watchman of Dagster's `tail`, which captures what steps print here and not with our dagster.yaml
        found = [pid for pid in processes_with(folder) if b"watch_orphans" not in command_of(pid)]
        for pid in chance.sample(found, min(len(found), chance.randint(1, 2))):
            os.kill(pid, chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        time.sleep(chance.uniform(0, 1))
        process.kill()
        process.wait()
        wait_for(partial(is_over, folder), SECONDS, partial("kill {}".format, number))


def start_patience(
    folder: Path, wait: bool = True, job: str = "patience", setup: str = ""
) -> "subprocess.Popen[bytes]":
    """Starts a job that waits, in a process of its own, and returns when it does."""
    (folder / "patient_jobs.py").write_text(_JOBS)
    script = f"""
        import dagster as dg
        from dagster._core.definitions.reconstruct import ReconstructableRepository
        if __name__ == "__main__":
            {setup}
            repository = ReconstructableRepository.for_module("patient_jobs", "repository", {str(folder)!r})
            instance = dg.DagsterInstance.local_temp({str(folder)!r}, overrides={OVERRIDES!r})
            dg.execute_job(repository.get_reconstructable_job({job!r}), instance)
    """
    (folder / "start.py").write_text(dedent(script))
    with (folder / "log").open("wb") as log:
        root = str(Path(__file__).parents[2])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([root, str(folder)]), "MARK": str(folder)}
        process = subprocess.Popen([sys.executable, folder / "start.py"], env=environment, stdout=log, stderr=log)
    if wait:
        wait_for((folder / "waiting").exists, 200, lambda: (folder / "log").read_text()[-3000:])
    return process


def what_failed(folder: Path) -> list[str]:
    """What the steps said that failed in the run that `start_patience` started."""
    with dg.DagsterInstance.local_temp(str(folder), overrides=OVERRIDES) as instance:
        (run,) = instance.get_runs()
        assert run.is_finished
        events = [log.dagster_event for log in instance.all_logs(run.run_id, dg.DagsterEventType.STEP_FAILURE)]
    return [event.step_failure_data.error.to_string() for event in events if event]


def is_over(folder: Path) -> bool:
    """Whether no process with the mark is left."""
    return not processes_with(folder)


def command_of(pid: int) -> bytes:
    """The command line of a process; nothing when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def processes_with(folder: Path) -> list[int]:
    """The processes that were started with `MARK` in their environment, and what they started."""
    mark = f"MARK={folder}\0".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def test_runs_of_one_process_share_what_their_steps_have_imported(
    make_dataset: Callable[..., str], project: Project
) -> None:
    name = make_dataset("again")
    assert project.refresh(name, SHARDS).ok
    server = server_of(os.getpid())
    assert project.refresh(name, SHARDS).ok
    assert server_of(os.getpid()) == server
    assert not children_of(server)  # nothing is left of the runs
    os.kill(server, signal.SIGKILL)
    assert project.refresh(name, SHARDS).ok
    assert server_of(os.getpid()) != server


def test_who_was_interrupted_while_a_template_ended_takes_its_status_for_no_others() -> None:
    first, second = Template(PRELOAD, "no job"), Template(PRELOAD, "no job")
    for template in (first, second):
        wait_for(partial(template.ready_within, 0.1), 60)
    one, other = sorted(children_of(server_of(os.getpid())))
    os.kill(one, signal.SIGTERM)  # which it ignores: the run's process decides
    os.kill(one, signal.SIGKILL)
    first._server._requests.send(("reap", one))  # and an interrupt comes, before the answer is received
    os.kill(other, signal.SIGSEGV)
    assert "SIGSEGV" in str(second.died())
    assert "SIGKILL" in str(first.died())
    first.close()
    second.close()


def test_a_template_that_dies_at_once_is_told_of_where_a_worker_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    close_server()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    job = "x" * (4 << 20)  # more than fits into the connection: it would be waited for that somebody reads it
    with Crew("no_such_module", job, None) as crew, pytest.raises(TemplateDied, match="ended with exit code 1"):
        crew.start("step", None)
    prepare("few")
    stop_prepared()
