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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, expect

from tests.components.project import Project, environment, kill_group
from tests.waiting import wait_for
from tfr_assets.components.assets.jobs import all_partitions

SECONDS = 400  # that anything may take on a busy machine
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
        (home / "workspace.yaml").write_text(
            f"load_from: [{{python_module: {{module_name: {project.package}.definitions, "
            f"location_name: {project.package}}}}}]\n"
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "dagster", "dev", "--host", "127.0.0.1", "--port", str(port)]
        log = (project.root / "dev.log").open("wb")
        process = subprocess.Popen(
            [*command, "--workspace", "workspace.yaml"],
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
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            kill_group(self.process)

    def query(self, text: str) -> dict[str, Any]:
        """Returns what the server knows, for waiting; what a person sees is looked at in the browser."""
        request = urllib.request.Request(
            f"{self.address}/graphql", json.dumps({"query": text}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            data: dict[str, Any] = json.load(response)["data"]
            return data

    def runs(self, dataset: str) -> list[dict[str, Any]]:
        """All runs of a dataset, the latest first."""
        return self._runs(f'{{tags: [{{key: "tfr/dataset", value: "{dataset}"}}]}}')

    def runs_of_job(self, job: str) -> list[dict[str, Any]]:
        """All runs of a job, the latest first."""
        return self._runs(f'{{pipelineName: "{job}"}}')

    def _runs(self, which: str) -> list[dict[str, Any]]:
        found = "... on Runs { results { runId jobName status tags { key value } } }"
        runs: list[dict[str, Any]] = self.query(f"{{ runsOrError(filter: {which}) {{ {found} }} }}")["runsOrError"][
            "results"
        ]
        return runs

    def statuses(self, dataset: str) -> list[str]:
        """The result of all runs of a dataset, the latest first."""
        return [run["status"] for run in self.runs(dataset)]

    def wait_for_runs(self, dataset: str, before: int, count: int = 1) -> list[dict[str, Any]]:
        """Waits until a dataset has so many more runs than before and all are over, and returns these."""
        over = {"SUCCESS", "FAILURE", "CANCELED"}

        def done() -> bool:
            found = self.statuses(dataset)
            return len(found) >= before + count and over.issuperset(found)

        wait_for(done, SECONDS, lambda: str(self.runs(dataset)))
        runs = self.runs(dataset)
        return runs[: len(runs) - before]

    def partitions(self, dataset: str) -> dict[str, int]:
        """How many partitions of a dataset's shards are materialized, failed, being materialized, and all of them."""
        stats = "partitionStats { numMaterialized numFailed numMaterializing numPartitions }"
        key = f'{{path: ["{dataset}", "shards"]}}'
        found: dict[str, int] = self.query(f"{{ assetNodes(assetKeys: [{key}]) {{ {stats} }} }}")["assetNodes"][0][
            "partitionStats"
        ]
        return {name.removeprefix("num").lower(): count for name, count in found.items()}

    def ticks(self, kind: str, name: str) -> list[str]:
        """Why ticks of a schedule or sensor launched nothing, the latest first; empty texts where they did."""
        location = f'repositoryName: "__repository__", repositoryLocationName: "{self.project.package}"'
        found = self.query(
            f'{{ {kind}OrError({kind}Selector: {{{location}, {kind}Name: "{name}"}}) {{ ... on {kind.capitalize()} '
            f"{{ {kind}State {{ ticks(limit: 50) {{ skipReason status }} }} }} }} }}"
        )[f"{kind}OrError"][f"{kind}State"]["ticks"]
        return [tick["skipReason"] or "" for tick in found if tick["status"] != "STARTED"]

    def backfills(self) -> list[dict[str, str]]:
        """All backfills, the latest first."""
        text = "{ partitionBackfillsOrError { ... on PartitionBackfills { results { id status } } } }"
        found: list[dict[str, str]] = self.query(text)["partitionBackfillsOrError"]["results"]
        return found

    def refresh(self, dataset: str, keys: list[str]) -> str:
        """Launches a refresh, without a backfill. Returns what became of it."""
        before = len(self.runs(dataset))
        tags = ", ".join(f'{{key: "{key}", value: "{value}"}}' for key, value in all_partitions(keys).items())
        job = (
            f'repositoryName: "__repository__", repositoryLocationName: "{self.project.package}", '
            f'jobName: "Refresh_{dataset}"'
        )
        parameters = f'executionParams: {{selector: {{{job}}}, mode: "default", executionMetadata: {{tags: [{tags}]}}}}'
        self.query(f"mutation {{ launchRun({parameters}) {{ __typename ... on PythonError {{ message }} }} }}")
        (run,) = self.wait_for_runs(dataset, before)
        return str(run["status"])

    def reload(self) -> None:
        """Loads the definitions again, as the button "Reload definitions" does."""
        self.query("mutation { reloadWorkspace { __typename } }")


@dataclass
class Board:
    """The pages of the UI."""

    page: Page
    server: Server
    dataset: str = ""  # whose page is open

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.server.address}/{path}")
        return self.page

    def lineage(self, group: str) -> Page:
        """Opens the graph of a group."""
        self.dataset = group.removesuffix("_bench")
        return self.open(f"locations/__repository__@{self.server.project.package}/asset-groups/{group}/lineage")

    def story(self, run: dict[str, Any], end: str) -> str:
        """Opens a run without the events of Dagster itself, and returns what its log then says, up to its end."""
        self.open(f"runs/{run['runId']}?levels=critical|error|warning|info")
        self.shows(end)
        return str(self.page.locator("body").inner_text())

    def asset(self, name: str, part: str, view: str = "overview") -> Page:
        self.dataset = name
        return self.open(f"assets/{name}/{part}?view={view}")

    def press(self, button: str, exact: bool = False) -> None:
        self.page.get_by_role("button", name=button, exact=exact).first.click()

    def materialize(self, button: str, partitions: str) -> dict[str, Any]:
        """Presses a button that materializes, chooses partitions, launches, and returns the one run that follows."""
        before = len(self.server.runs(self.dataset))
        self.launch(button, partitions)
        (run,) = self.server.wait_for_runs(self.dataset, before)
        return run

    def launch(self, button: str, partitions: str, *ticked: str) -> None:
        """As `materialize`, but does not wait for the end: only for the run, or the backfill that will launch it.

        Args:
            button: is pressed first.
            partitions: the button of the dialog that chooses them.
            ticked: instead, these alone, one by one in the list.
        """

        def launched() -> int:
            return len(self.server.backfills()) + len(self.server.runs(self.dataset))

        before = launched()
        self.press(button)
        self.press(partitions, exact=True)
        if ticked:
            self.press("Custom", exact=True)
            self.page.get_by_role("dialog").get_by_label("expand_more").first.click()
            self.page.get_by_text("Select all").click()  # which takes all ticks away
            for key in ticked:
                self.page.get_by_role("menuitem", name=key).click()
            self.page.keyboard.press("Escape")
            self.shows(re.compile(rf"\b{len(ticked)} partitions?\b"))
        self.press("Launch")
        wait_for(lambda: launched() > before, SECONDS)

    def materialize_alone(self, part: str) -> dict[str, Any]:
        """Materializes an asset without partitions on its page, and shows the run that follows."""
        before = len(self.server.runs(self.dataset))
        self.asset(self.dataset, part)
        self.press("Materialize")
        (run,) = self.server.wait_for_runs(self.dataset, before)
        self.open(f"runs/{run['runId']}")
        return run

    def cancel_backfill(self) -> None:
        """Cancels the latest backfill on its page, and waits until it is."""
        self.open(f"runs/b/{self.server.backfills()[0]['id']}")
        self.shows("In progress")
        self.page.get_by_role("button").last.click()
        self.page.get_by_role("menuitem", name="Cancel backfill").click()
        self.page.get_by_role("button", name="Cancel backfill").last.click()
        wait_for(lambda: self.server.backfills()[0]["status"] == "CANCELED", SECONDS)

    def launch_job(self, job: str) -> dict[str, Any]:
        """Launches a job from its launchpad as it is, and returns its run."""
        dataset = job.partition("_")[2]
        before = len(self.server.runs(dataset))
        self.open(f"locations/{self.server.project.package}/jobs/{job}/playground")
        self.press("Launch Run")
        (run,) = self.server.wait_for_runs(dataset, before)
        return run

    def shows(self, *texts: str | re.Pattern[str]) -> None:
        """Waits until the page shows texts."""
        for text in texts:
            expect(self.page.get_by_text(text).first).to_be_visible(timeout=SECONDS * 1000)

    def picture(self, name: str, area: tuple[int, int, int, int]) -> None:
        """Takes a picture of an area (x, y, width, height) for the docs, if `$TFR_PICTURES` names their folder."""
        if folder := os.environ.get("TFR_PICTURES"):
            path = Path(folder) / f"{name}.png"
            self.page.screenshot(path=path, clip=dict(zip(("x", "y", "width", "height"), area, strict=True)))
            Image.open(path).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
