"""Runs of a terminal beside those of a real webserver and daemon, with the project's own dagster.yaml."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import pytest
import yaml

from tests.cli.terminal import PACKAGE, Terminal, kill_all
from tests.waiting import wait_for

Status = dg.DagsterRunStatus
_LAUNCH = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename
    ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_TERMINATE = """mutation($id: String!) { terminateRun(runId: $id) { __typename
    ... on PythonError { message } ... on TerminateRunFailure { message } } }"""
_DAEMONS = "{ instance { daemonHealth { allDaemonStatuses { daemonType lastHeartbeatTime } } } }"
_HISTORY = """query($job: String!) {
    pipelineOrError(params: {
        pipelineName: $job, repositoryName: "__repository__", repositoryLocationName: "tfr_assets"
    }) { ... on Pipeline { runs(limit: 50) { runId } } }
    runsOrError(filter: {
        pipelineName: $job, tags: [{key: ".dagster/repository", value: "__repository__@tfr_assets"}]
    }) { ... on Runs { results { runId repositoryOrigin { repositoryName repositoryLocationName } } } } }"""


@dataclass
class Ui:
    """The webserver and the daemon of a project."""

    terminal: Terminal
    port: int = 0
    since: float = 0.0
    processes: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.since = time.time()
        webserver = ["dagster_webserver", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(self.port)]
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", *command],
                env=self.terminal.environment(),
                cwd=self.terminal.root,
                stdout=(self.terminal.root / f"{command[0]}.log").open("w"),
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            for command in (webserver, ["dagster._daemon", "run", "-w", "workspace.yaml"])
        ]
        wait_for(self._answers, 600)

    def look_every(self, seconds: int) -> None:
        """Sets how often the daemon looks for dead runs, from its next start on."""
        text = (PACKAGE.parent / "dagster.yaml").read_text()
        settings = yaml.safe_load(text.replace("base_dir: .dagster", f"base_dir: {self.terminal.home}"))
        settings["run_monitoring"]["poll_interval_seconds"] = seconds
        settings["run_coordinator"]["config"] = {"dequeue_interval_seconds": 1}
        self.terminal.configure(settings)

    def kill(self) -> None:
        """Kills all processes at once, and with them those of the runs that they launched."""
        for process in self.processes:
            kill_all(process)

    def ask(self, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=900) as answer:
            return json.load(answer)["data"]

    def launch_raw(self) -> str:
        """Launches what the page of the asset `raw` launches, and returns the run."""
        selector = {
            "repositoryName": "__repository__", "repositoryLocationName": "tfr_assets", "pipelineName": "__ASSET_JOB",
            "assetSelection": [{"path": ["few", "raw"]}], "assetCheckSelection": [],
        }  # fmt: skip
        found = self.ask(_LAUNCH, p={"selector": selector, "mode": "default", "runConfigData": {}})["launchRun"]
        assert found["__typename"] == "LaunchRunSuccess", found
        return str(found["run"]["runId"])

    def _answers(self) -> bool:
        """Whether the webserver answers, and the daemon looks at queued runs and at dead ones."""
        try:
            daemons = self.ask(_DAEMONS)["instance"]["daemonHealth"]["allDaemonStatuses"]
            beats = {each["daemonType"]: each["lastHeartbeatTime"] or 0 for each in daemons}
            return min(beats[daemon] for daemon in ("QUEUED_RUN_COORDINATOR", "MONITORING")) > self.since
        except (urllib.error.URLError, ConnectionError):
            assert all(process.poll() is None for process in self.processes), self.log()
            return False

    def log(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in self.terminal.root.glob("*.log"))


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    terminal = Terminal(tmp_path_factory.mktemp("ui"), env={"DAGSTER_DISABLE_TELEMETRY": "1"})
    started = Ui(terminal)
    started.look_every(1)
    (terminal.root / "workspace.yaml").write_text((PACKAGE.parent / "workspace.yaml").read_text())
    with terminal.instance():  # makes the databases
        pass
    started.start()
    yield started
    started.kill()


def run_of(ui: Ui, run_id: str) -> dg.DagsterRun:
    with ui.terminal.instance() as instance:
        run = instance.get_run_by_id(run_id)
        assert run is not None
        return run


def wait_for_status(ui: Ui, run_id: str, *wanted: Status) -> None:
    with ui.terminal.instance() as instance:
        wait_for(lambda: instance.get_run_by_id(run_id).status in wanted, 600, ui.log)  # type: ignore[union-attr]


def test_a_killed_run_of_the_terminal_ends_within_a_poll_and_lets_the_queue_go_on(ui: Ui) -> None:
    process = ui.terminal.start_held("run", "few")
    killed = ui.terminal.runs()[-1].run_id
    assert run_of(ui, killed).tags["tfr/dataset"] == "few"
    waiting = ui.launch_raw()
    assert run_of(ui, waiting).tags["tfr/dataset"] == "few"  # though no job says so
    time.sleep(3)  # the daemon looks every second
    assert run_of(ui, waiting).status is Status.QUEUED, (run_of(ui, killed), ui.log())
    os.kill(process.pid, signal.SIGKILL)
    ui.terminal.hold.unlink()
    wait_for_status(ui, killed, Status.FAILURE)
    wait_for_status(ui, waiting, Status.SUCCESS)
    kill_all(process)
    history = ui.ask(_HISTORY, job="Refresh_few")  # what the page of the job, and the first page, ask for
    assert [run["runId"] for run in history["pipelineOrError"]["runs"]] == [killed]
    (run,) = history["runsOrError"]["results"]
    assert run["repositoryOrigin"] == {"repositoryName": "__repository__", "repositoryLocationName": "tfr_assets"}


def test_a_run_of_the_terminal_can_be_stopped_in_the_ui(ui: Ui) -> None:
    process = ui.terminal.start_held("run", "few")
    run_id = ui.terminal.runs()[-1].run_id
    found = ui.ask(_TERMINATE, id=run_id)["terminateRun"]
    assert found["__typename"] == "TerminateRunSuccess", found
    _, err = process.communicate(timeout=900)
    assert process.returncode == 130, err
    assert run_of(ui, run_id).status is Status.CANCELED
    ui.terminal.hold.unlink()


def test_a_run_whose_ui_was_killed_is_ended_at_once_and_launched_again_when_the_ui_is_back(ui: Ui) -> None:
    ui.terminal.hold.touch()
    (ui.terminal.root / "held").unlink(missing_ok=True)
    killed = ui.launch_raw()
    wait_for((ui.terminal.root / "held").exists, 600, ui.log)
    ui.kill()
    assert run_of(ui, killed).status is Status.STARTED
    ui.terminal.hold.unlink()
    ui.look_every(3600)  # so that the first look is the only one
    ui.start()
    wait_for_status(ui, killed, Status.FAILURE)
    with ui.terminal.instance() as instance:
        again = dg.RunsFilter(tags={"dagster/parent_run_id": killed}, statuses=[Status.SUCCESS])
        wait_for(lambda: bool(instance.get_runs(again)), 600, ui.log)
