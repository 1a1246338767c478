"""A whole project in a temporary folder: datasets as YAML, real runs, an instance on disk."""

import os
import signal
import subprocess
import sys
import textwrap
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from dagster._core.definitions.reconstruct import ReconstructableJob, ReconstructableRepository

from tests.memory import make_in_memory
from tfr_assets.components.assets.jobs import all_partitions
from tfr_assets.components.config.component import TFRecordDataset
from tfr_assets.layout import Layout, shard_keys
from tfr_assets.urls import mirror_of
from tfr_assets.writing.dataset import Dataset

OVERRIDES = {"telemetry": {"enabled": False}}

# What every process of a run loads. In a step's process, a file `faults/KEY` says what shall happen to that shard.
_DEFINITIONS = """
import os
import signal
import sys
import time
from pathlib import Path

import dagster as dg

from tfr_assets.components.config.load import load_all
from tfr_assets.components.runs.executor import build_executor
from tfr_assets.project import find_project

ROOT = Path(__file__).parents[1]
os.environ["TFR_DATA"] = os.environ.get("TFR_TEST_DATA") or {data!r} or str(ROOT / "data")


@dg.definitions
def defs():
    return dg.Definitions.merge(load_all(find_project(ROOT)), dg.Definitions(executor=build_executor()))


if {"tfr_assets.components.runs.steps.worker", "tfr_assets.components.runs.celery.app"} & set(sys.modules):
    from tfr_assets.writing import shard as module

    write = module.write_shard

    def write_shard(plan, shard, progress=None):
        order = ROOT / "faults" / shard.key
        if order.exists() and order.read_text() == "kill":
            order.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        while order.exists():  # "wait"
            (ROOT / "faults" / f"{shard.key}.waiting").touch()
            time.sleep(0.02)
        return write(plan, shard, progress)

    module.write_shard = write_shard
"""


@dataclass
class Ran:
    """A finished run and its events."""

    run: dg.DagsterRun
    events: list[dg.DagsterEvent]

    @property
    def ok(self) -> bool:
        return self.run.status is dg.DagsterRunStatus.SUCCESS

    def steps(self, kind: str) -> list[str]:
        """Last parts of the keys of steps that had an event of this kind, such as `STEP_FAILURE`."""
        return [str(e.step_key).split(".")[-1] for e in self.events if e.event_type_value == kind]

    def materialized(self, part: str) -> dict[str | None, dict[str, Any]]:
        """Metadata by partition, of the last record of each."""
        found = {}
        for event in self.events:
            if event.event_type_value == "ASSET_MATERIALIZATION":
                what = event.step_materialization_data.materialization
                if what.asset_key.path[-1] == part:
                    found[what.partition] = {name: value.value for name, value in what.metadata.items()}
        return found

    def evaluations(self, part: str) -> dict[tuple[str | None, str], dg.AssetCheckEvaluation]:
        """Evaluations of an asset's checks that look at what it holds, not of `current`, by partition and check."""
        found = [e.asset_check_evaluation_data for e in self.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
        of_part = [each for each in found if each.asset_key.path[-1] == part and each.check_name != "current"]
        return {(each.partition, each.check_name): each for each in of_part}

    def problems(self) -> dict[str, str]:
        """What failed steps said, by the last part of their keys."""
        found = {}
        for event in self.events:
            if event.event_type_value == "STEP_FAILURE":
                failure = event.step_failure_data
                said = failure.user_failure_data and failure.user_failure_data.description
                found[str(event.step_key).split(".")[-1]] = said or failure.error.to_string()
        return found


@dataclass
class Project:
    """Datasets in `root`, run on an instance of their own; `data` is where they lie, if it is a URL."""

    root: Path
    package: str = field(default_factory=lambda: f"demo_{uuid.uuid4().hex[:8]}")
    data: str = ""

    def __post_init__(self) -> None:
        home = self.root / self.package
        (home / "defs").mkdir(parents=True)
        (self.root / "faults").mkdir()
        (self.root / "raw").mkdir()
        make_in_memory(self.root / "instance", self)
        (home / "__init__.py").touch()
        (home / "defs" / "__init__.py").touch()
        (home / "definitions.py").write_text(_DEFINITIONS.replace("{data!r}", repr(self.data)))
        (self.root / "pyproject.toml").write_text(
            textwrap.dedent(f"""
                [tool.dg]
                directory_type = "project"
                [tool.dg.project]
                root_module = "{self.package}"
                code_location_name = "{self.package}"
                registry_modules = ["tfr_assets"]
            """)
        )
        self.instance = dg.DagsterInstance.local_temp(str(self.root / "instance"), overrides=OVERRIDES)

    def table(self, name: str, table: pa.Table, row_group_size: int = 64) -> Path:
        """Writes a Parquet file below `raw`."""
        path = self.root / "raw" / f"{name}.parquet"
        pq.write_table(table, path, row_group_size=row_group_size)
        return path

    def dataset(self, name: str, **attributes: Any) -> None:
        """Writes a dataset's YAML; by default it reads the file of the same name."""
        self.yaml(name).parent.mkdir(exist_ok=True)
        attributes = {"source": f"raw/{name}.parquet"} | attributes
        self.yaml(name).write_text(
            yaml.safe_dump({"type": "tfr_assets.TFRecordDataset", "attributes": attributes}, sort_keys=False)
        )

    def yaml(self, name: str) -> Path:
        """Returns the file that describes a dataset."""
        return self.root / self.package / "defs" / name / "defs.yaml"

    def load(self, name: str) -> Dataset:
        """Returns a dataset as its YAML describes it now."""
        attributes = yaml.safe_load(self.yaml(name).read_text())["attributes"]
        made = TFRecordDataset.from_attributes_dict(attributes=attributes)
        return replace(made.dataset(name, self.root), root=self._data_root)

    def layout(self, name: str) -> Layout:
        return Layout.of(name, self._data_root)

    @property
    def _data_root(self) -> Path:
        return mirror_of(self.data) if self.data else self.root / "data"

    def repository(self) -> dg.RepositoryDefinition:
        return self._job("__ASSET_JOB").get_reconstructable_repository().get_definition()

    def run(
        self,
        job: str,
        keys: list[str] | None = None,
        tags: dict[str, str] | None = None,
        assets: list[dg.AssetKey] | None = None,
        from_failure_of: Ran | None = None,
        config: dict[str, Any] | None = None,
    ) -> Ran:
        """Runs a job in this process, its steps in their own."""
        again = from_failure_of and dg.ReexecutionOptions.from_failure(from_failure_of.run.run_id, self.instance)
        with dg.execute_job(
            self._job(job),
            instance=self.instance,
            tags=(tags or {}) | (all_partitions(keys) if keys else {}),
            asset_selection=assets,
            run_config=config,
            reexecution_options=again,
        ) as result:
            return self.ran(result.run_id)

    def refresh(self, name: str, shards: int) -> Ran:
        """Runs the refresh job over all shards."""
        return self.run(f"Refresh_{name}", shard_keys("train", shards))

    def ran(self, run_id: str) -> Ran:
        """Returns what a run recorded."""
        run = self.instance.get_run_by_id(run_id)
        assert run
        return Ran(run, [log.dagster_event for log in self.instance.all_logs(run_id) if log.dagster_event])

    def fault(self, key: str, what: str) -> Path:
        """Orders a fault for a shard: `kill` its step once, or make it `wait` until the returned file is removed."""
        path = self.root / "faults" / key
        Path(f"{path}.waiting").unlink(missing_ok=True)  # of an earlier test
        path.write_text(what)
        return path

    def _job(self, name: str) -> ReconstructableJob:
        ReconstructableJob.get_definition.cache_clear()  # the YAML may have changed since the last run
        ReconstructableJob.get_repository_definition.cache_clear()
        module = f"{self.package}.definitions"
        return ReconstructableRepository.for_module(module, "defs", str(self.root)).get_reconstructable_job(name)


def environment(project: Project) -> dict[str, str]:
    """The environment of a process in which the project can be imported."""
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join([here, str(project.root)])
    return os.environ | {"PYTHONPATH": path, "TFR_DATA": project.data or str(project.root / "data")}


def start_run(project: Project, job: str, keys: list[str], setup: str = "") -> "subprocess.Popen[bytes]":
    """Starts a run in a process of its own, which can be killed; `setup` is a line that it executes before."""
    script = f"""
        import dagster as dg
        from dagster._core.definitions.reconstruct import ReconstructableRepository
        if __name__ == "__main__":
            {setup}
            module = "{project.package}.definitions"
            repository = ReconstructableRepository.for_module(module, "defs", {str(project.root)!r})
            instance = dg.DagsterInstance.local_temp({str(project.root / "instance")!r}, overrides={OVERRIDES!r})
            job = repository.get_reconstructable_job({job!r})
            dg.execute_job(job, instance=instance, tags={all_partitions(keys)!r})
    """
    path = project.root / "start_run.py"
    path.write_text(textwrap.dedent(script))
    log = (project.root / "start_run.log").open("wb")
    return subprocess.Popen(
        [sys.executable, str(path)], env=environment(project), stdout=log, stderr=log, start_new_session=True
    )


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kills a process that `start_new_session` started, and all its children."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
