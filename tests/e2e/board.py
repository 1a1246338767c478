"""`dagster dev` with its daemon as real processes, and what a person does in a browser in front of it."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.components.project import Project, environment
from tests.waiting import wait_for

SECONDS = 120  # that anything may take on a busy machine
_INSTANCE = Path(__file__).parents[2] / "dagster.yaml"


@dataclass
class Server:
    """`dagster dev` of a project, on an instance of its own with the settings that users have."""

    project: Project
    address: str
    process: "subprocess.Popen[bytes]"

    @classmethod
    def start(cls, project: Project) -> "Server":
        home = project.root / "home"
        home.mkdir()
        shutil.copy(_INSTANCE, home)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "dagster", "dev", "--host", "127.0.0.1", "--port", str(port)]
        log = (project.root / "dev.log").open("wb")
        process = subprocess.Popen(
            [*command, "-m", f"{project.package}.definitions"],
            env=environment(project) | {"DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "1"},
            cwd=home,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        server = cls(project, f"http://127.0.0.1:{port}", process)

        def answers() -> bool:
            assert process.poll() is None, (project.root / "dev.log").read_text()
            try:
                return bool(server.query("{ version }"))
            except OSError:
                return False

        wait_for(answers, SECONDS)
        return server

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(30)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)

    def query(self, text: str) -> dict[str, Any]:
        """Returns what the server knows, for waiting; what a person sees is looked at in the browser."""
        request = urllib.request.Request(
            f"{self.address}/graphql", json.dumps({"query": text}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            data: dict[str, Any] = json.load(response)["data"]
            return data

    def runs(self) -> list[dict[str, Any]]:
        """All runs, the latest first."""
        text = "{ runsOrError { ... on Runs { results { runId jobName status tags { key value } } } } }"
        found: list[dict[str, Any]] = self.query(text)["runsOrError"]["results"]
        return found

    def wait_for_runs(self, before: int, count: int = 1) -> list[dict[str, Any]]:
        """Waits until so many more runs than before are there and over, and returns these."""
        over = {"SUCCESS", "FAILURE", "CANCELED"}

        def done() -> bool:
            runs = self.runs()
            return len(runs) >= before + count and all(run["status"] in over for run in runs)

        wait_for(done, SECONDS)
        return self.runs()[: len(self.runs()) - before]

    def reload(self) -> None:
        """Loads the definitions again, as the button "Reload definitions" does."""
        self.query("mutation { reloadWorkspace { __typename } }")


@dataclass
class Board:
    """The pages of the UI."""

    page: Page
    server: Server

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.server.address}/{path}")
        return self.page

    def lineage(self, name: str) -> Page:
        """Opens the graph of a dataset's group."""
        location = self.server.project.package
        return self.open(f"locations/__repository__@{location}/asset-groups/{name}/lineage")

    def asset(self, name: str, part: str, view: str = "overview") -> Page:
        return self.open(f"assets/{name}/{part}?view={view}")

    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")


__all__ = ["Board", "Sequence", "Server", "expect", "re"]
