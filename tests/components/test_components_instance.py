"""The project's own dagster.yaml and workspace.yaml at work: daemon, schedule, backfill, and where they write."""

import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._daemon import backfill, controller

from tests.waiting import wait_for
from tfr_assets.components.assets.jobs import all_partitions
from tfr_assets.layout import shard_keys

from .conftest import SHARDS, numbers
from .project import Project, environment, kill_group

ROOT = Path(__file__).parents[2]
KEYS = shard_keys("train", SHARDS)

# the daemon as it is
_DAEMON = """
import sys
from dagster._daemon.cli import create_dagster_daemon_cli
if __name__ == "__main__":
    sys.argv = ["dagster-daemon", "run", "-w", "workspace.yaml"]
    create_dagster_daemon_cli()()
"""
_LAUNCH = """mutation($backfill: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $backfill) {
    ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_OUTCOME = """query($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill {
    status runs(limit: 10) { status } assetBackfillData { assetBackfillStatuses { ... on AssetPartitionsStatusCounts {
    assetKey { path } numPartitionsTargeted numPartitionsMaterialized numPartitionsFailed } } } } } }"""


def test_the_daemon_looks_for_backfills_soon_after_a_click(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "DEFAULT_DAEMON_INTERVAL_SECONDS", 30)
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.run_coordinator
    assert controller.DEFAULT_DAEMON_INTERVAL_SECONDS == 2
    assert "DEFAULT_DAEMON_INTERVAL_SECONDS" in inspect.getsource(backfill.execute_backfill_iteration_loop)


@pytest.fixture(scope="module")
def home(project: Project) -> Iterator[Path]:
    """The project with the instance that `make` uses, and its daemon running."""
    spiked = numbers()
    ids = spiked["id"].to_pylist()
    ids[600] = 2**63
    project.table("spiked", spiked.set_column(0, "id", pa.array(ids, pa.uint64())))
    project.dataset("spiked", shards=SHARDS)
    project.table("slow", numbers())
    project.dataset("slow", shards=SHARDS)
    project.table("minutely", numbers(10))
    project.dataset("minutely", shards=2, schedule="* * * * *")
    root = project.root
    shutil.copy(ROOT / "dagster.yaml", root)
    workspace = (ROOT / "workspace.yaml").read_text()
    (root / "workspace.yaml").write_text(workspace.replace("tfr_assets", project.package))
    (root / "daemon.py").write_text(_DAEMON)
    with pytest.MonkeyPatch.context() as patch, (root / "daemon.log").open("wb") as log:
        patch.chdir(root)
        patch.setenv("DAGSTER_HOME", str(root))
        patch.setenv(
            "DAGSTER_DISABLE_TELEMETRY", "1"
        )  # else it makes empty folders, though dagster.yaml has it sent nothing
        dg.DagsterInstance.get().dispose()  # two processes that create the databases at once would spoil them
        before = set(root.iterdir())
        daemon = subprocess.Popen(
            [sys.executable, "daemon.py"], env=environment(project), stdout=log, stderr=log, start_new_session=True
        )
        yield root
        kill_group(daemon)
        assert {path.name for path in set(root.iterdir()) - before} <= {".dagster", "data", "start_run.py"}


def test_a_backfill_is_one_run_and_says_three_ok_and_one_failed(project: Project, home: Path) -> None:
    wanted = {
        "assetSelection": [{"path": ["spiked", "raw"]}, {"path": ["spiked", "shards"]}],
        "partitionNames": KEYS,
    }
    backfill = graphql(project, _LAUNCH, backfill=wanted)["launchPartitionBackfill"]["backfillId"]
    with dg.DagsterInstance.get() as instance:
        wait_for_daemon(lambda: instance.get_backfill(backfill).status.value.startswith("COMPLETED"), home)
        assert instance.get_materialized_partitions(dg.AssetKey(["spiked", "shards"])) == {KEYS[0], KEYS[1], KEYS[3]}
    found = graphql(project, _OUTCOME, id=backfill)["partitionBackfillOrError"]
    assert sorted(run["status"] for run in found["runs"]) == ["FAILURE", "SUCCESS"]  # raw, and all shards in one
    (counts,) = filter(None, found["assetBackfillData"]["assetBackfillStatuses"])  # nothing is said of raw
    assert counts.pop("assetKey")["path"] == ["spiked", "shards"]
    assert counts == {"numPartitionsTargeted": 4, "numPartitionsMaterialized": 3, "numPartitionsFailed": 1}


def test_a_backfill_tells_how_far_it_is_while_its_one_run_is_at_work(project: Project, home: Path) -> None:
    wanted = {"assetSelection": [{"path": ["slow", "raw"]}, {"path": ["slow", "shards"]}], "partitionNames": KEYS}
    fault = project.fault(KEYS[3], "wait")
    backfill = graphql(project, _LAUNCH, backfill=wanted)["launchPartitionBackfill"]["backfillId"]
    counted = {"numPartitionsTargeted": 4, "numPartitionsMaterialized": 3, "numPartitionsFailed": 0}

    def counts() -> dict[str, Any]:
        found = graphql(project, _OUTCOME, id=backfill)["partitionBackfillOrError"]["assetBackfillData"]
        of_shards = next(filter(None, found["assetBackfillStatuses"]), {})
        return {name: of_shards.get(name) for name in counted}

    with dg.DagsterInstance.get() as instance:
        wait_for_daemon(lambda: len(instance.get_materialized_partitions(dg.AssetKey(["slow", "shards"]))) == 3, home)
        wait_for_daemon(lambda: counts() == counted, home)
        assert instance.get_backfill(backfill).status.value == "REQUESTED"
        fault.unlink()
        wait_for_daemon(lambda: instance.get_backfill(backfill).status.value.startswith("COMPLETED"), home)
    assert counts() == counted | {"numPartitionsMaterialized": 4}


def test_the_schedule_ticks_and_its_run_makes_everything(home: Path) -> None:
    with dg.DagsterInstance.get() as instance:
        job = dg.RunsFilter(job_name="Refresh_minutely", statuses=[dg.DagsterRunStatus.SUCCESS])
        wait_for_daemon(lambda: bool(instance.get_runs(job, limit=1)), home)
        run = instance.get_runs(job)[-1]
        assert run.tags["dagster/schedule_name"] == "minutely_schedule"
        assert instance.get_materialized_partitions(dg.AssetKey(["minutely", "shards"])) == set(shard_keys("train", 2))
        assert instance.get_latest_materialization_event(dg.AssetKey(["minutely", "merged"]))


def test_a_tick_asks_for_one_run_over_all_shards(project: Project) -> None:
    project.table("ticking", numbers(10))
    project.dataset("ticking", shards=3, schedule="0 6 * * *")
    schedule = project.repository().get_schedule_def("ticking_schedule")
    assert schedule.cron_schedule == "0 6 * * *"
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    (request,) = schedule.evaluate_tick(dg.build_schedule_context(instance=project.instance)).run_requests
    assert all_partitions(shard_keys("train", 3)).items() <= request.tags.items()
    assert request.run_key is None  # or it would run once ever


def test_the_instance_is_what_its_file_says(home: Path) -> None:
    with dg.DagsterInstance.get() as instance:
        assert not instance.telemetry_enabled
        assert instance.run_monitoring_enabled and instance.run_monitoring_max_runtime_seconds == 86_400
        assert instance.event_log_storage.get_pool_config().default_pool_limit == 1
        assert instance.run_retries_enabled and not instance.run_retries_retry_on_asset_or_op_failure
        assert Path(instance.storage_directory()).resolve() == home / ".dagster" / "storage"
        assert not [path for path in home.iterdir() if path.name in ("history", "schedules", "storage")]


def graphql(project: Project, query: str, **variables: Any) -> dict[str, Any]:
    """Asks what the UI asks, on a server of its own."""
    cli = "from dagster_graphql.cli import main; main()"
    command = [sys.executable, "-c", cli, "-w", "workspace.yaml", "-t", query, "-v", json.dumps(variables)]
    env = environment(project)
    done = subprocess.run(command, env=env, cwd=project.root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])  # a log line follows
    data: dict[str, Any] = found["data"]
    return data


def wait_for_daemon(condition: Callable[[], bool], home: Path) -> None:
    wait_for(condition, 200, lambda: (home / "daemon.log").read_text()[-3000:])
