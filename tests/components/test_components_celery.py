"""Steps by Celery's workers: a real Redis, real workers, which are really killed."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from tests.waiting import wait_for
from tfr_assets.errors import ConfigError

from .conftest import SHARDS
from .project import Project, environment, start_run

pytest.importorskip("dagster_celery", reason="needs the extra celery")
pytestmark = pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server")
KEYS = [f"train-{n:05}-of-{SHARDS:05}" for n in range(SHARDS)]


class Redis:
    """A server that keeps what it is told when it is restarted."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--dir", str(self.folder), "--appendonly", "yes"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_for(self._answers, 60)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class Workers:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str) -> "subprocess.Popen[bytes]":
        app = "tfr_assets.components.runs.celery.app"
        options = ["-Q", "dagster", "--concurrency", "1", "--loglevel", "INFO", "-n", f"{name}@%h"]
        log = (self.project.root / f"{name}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", app, "worker", *options],
            cwd=self.project.root, env=environment(self.project), stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        self.running.append(process)
        wait_for(lambda: b" ready." in (self.project.root / f"{name}.log").read_bytes(), 200)
        return process

    def stop(self) -> None:
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    server = Redis(tmp_path_factory.mktemp("redis"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFR_EXECUTOR", "celery")
        patch.setenv("TFR_CELERY_BROKER", server.url)
        yield server
    server.stop()


@pytest.fixture
def workers(redis: Redis, project: Project) -> Iterator[Workers]:
    made = Workers(project)
    yield made
    made.stop()


def files_of(project: Project, name: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in project.layout(name).shards.glob("*.tfrecord-*")}


def test_two_workers_make_what_one_machine_makes(
    project: Project, make_dataset: Callable[..., str], workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.start("one")
    workers.start("two")
    name = make_dataset("spread")
    process = start_run(project, f"Refresh_{name}", KEYS)
    assert process.wait(300) == 0
    run = project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0]
    ran = project.ran(run.run_id)
    assert ran.ok, ran.problems()
    assert set(ran.materialized("shards")) == set(KEYS)
    took = [e for e in ran.events if "in celery worker" in str(e.message)]
    hosts = {str(e.engine_event_data.metadata["Celery worker"].value).partition("@")[0] for e in took}
    assert hosts == {"one", "two"}
    made = files_of(project, name)
    monkeypatch.delenv("TFR_EXECUTOR")
    shutil.rmtree(project.layout(name).folder)
    assert project.refresh(name, SHARDS).ok
    assert files_of(project, name) == made and len(made) == SHARDS


def test_a_worker_that_is_killed_does_not_hang_the_run_and_the_next_one_completes(
    project: Project, make_dataset: Callable[..., str], workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = workers.start("victim")
    name = make_dataset("bereft")
    fault = project.fault(KEYS[1], "wait")
    often = "import tfr_assets.components.runs.celery.lost as lost; lost._SECONDS_BETWEEN_LOOKS = 1.0"
    process = start_run(project, f"Refresh_{name}", KEYS, setup=often)
    wait_for(lambda: Path(f"{fault}.waiting").exists(), 200)
    os.killpg(victim.pid, signal.SIGKILL)
    fault.unlink()
    workers.start("successor")
    process.wait(300)
    run = project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0]
    assert run.status is dg.DagsterRunStatus.FAILURE
    said = " ".join(str(e.message) + str(e.event_specific_data) for e in project.ran(run.run_id).events)
    assert "was begun by the worker victim@" in said and "Launch the run again" in said
    assert start_run(project, f"Refresh_{name}", KEYS).wait(300) == 0
    run = project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0]
    assert run.status is dg.DagsterRunStatus.SUCCESS
    assert len(files_of(project, name)) == SHARDS


def test_a_broker_that_stops_while_workers_are_asked_leaves_unknown_what_they_do(redis: Redis) -> None:
    from dagster_celery.make_app import make_app

    from tfr_assets.components.runs.celery.lost import Workers as Asked
    from tfr_assets.components.runs.celery.settings import app_arguments

    asked = Asked(make_app(app_arguments()))
    assert asked.look("nobody")[1] == set()
    again = Asked(asked._app)
    stop = threading.Timer(0.5, redis.stop)  # an answer is waited for longer than that
    stop.start()
    assert again.look("nobody")[1] is None
    stop.join()
    redis.start()


def test_a_broker_that_is_restarted_delays_the_run(
    project: Project, make_dataset: Callable[..., str], workers: Workers, redis: Redis
) -> None:
    workers.start("patient")
    name = make_dataset("interrupted")
    fault = project.fault(KEYS[1], "wait")
    process = start_run(project, f"Refresh_{name}", KEYS)
    wait_for(lambda: Path(f"{fault}.waiting").exists(), 200)
    redis.stop()
    redis.start()
    fault.unlink()
    assert process.wait(300) == 0
    run = project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0]
    assert run.status is dg.DagsterRunStatus.SUCCESS, project.ran(run.run_id).problems()


def test_a_run_that_is_stopped_ends_its_steps(
    project: Project, make_dataset: Callable[..., str], workers: Workers
) -> None:
    workers.start("obedient")
    name = make_dataset("stopped")
    fault = project.fault(KEYS[0], "wait")
    waiting = Path(f"{fault}.waiting")
    process = start_run(project, f"Refresh_{name}", KEYS)
    wait_for(waiting.exists, 200)
    process.send_signal(signal.SIGTERM)
    process.wait(300)
    run = project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0]
    assert run.status in (dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.FAILURE)

    def is_over() -> bool:
        waiting.unlink(missing_ok=True)  # which the step makes again, as long as it runs
        time.sleep(0.5)
        return not waiting.exists()

    wait_for(is_over, 60)
    fault.unlink()


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"TFR_EXECUTOR": "celry"}, "TFR_EXECUTOR='celry': did you mean 'celery'?"),
        ({"TFR_EXECUTOR": "spark"}, "set it to one of local, celery"),
    ],
)
def test_an_executor_that_is_not_known_is_refused(
    variables: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfr_assets.components.runs.executor import build_executor

    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=says.replace("?", r"\?")):
        build_executor()


def test_without_a_broker_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from tfr_assets.components.runs.celery.settings import app_arguments

    monkeypatch.delenv("TFR_CELERY_BROKER", raising=False)
    with pytest.raises(ConfigError, match="set TFR_CELERY_BROKER, such as to redis://localhost:6379/0"):
        app_arguments()


def test_the_address_of_the_broker_is_in_no_configuration_of_a_run() -> None:
    from tfr_assets.components.runs.executor import celery_workers

    fields: Any = celery_workers.config_schema.config_type
    assert set(fields.fields) == {"retries"}
