"""What `dagster.yaml` names: how runs from the UI are queued, started and watched.

Both are Dagster's own, and a little more. An instance without them works, too: it notices dead runs when `tfr run`
starts, and holds runs of one dataset apart when they execute rather than in the queue.
"""

import sys
from collections.abc import Iterable
from typing import Any

import dagster as dg
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster._core.run_coordinator import SubmitRunContext

from tfr_assets.components.runs.dead_runs import DATASET_TAG, DEAD, TERMINAL_TAG, end_dead_runs, is_dead
from tfr_assets.components.runs.slices import queue_tag

_SECONDS_BETWEEN_LOOKS = 2


class RunLauncher(dg.DefaultRunLauncher):
    """Tells run monitoring which runs are dead, and stops runs of a terminal."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """True: monitoring asks for every run that is in progress."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Returns whether the process of a run is alive."""
        if is_dead(self._instance, run.run_id):
            return CheckRunHealthResult(WorkerStatus.FAILED, DEAD)
        return CheckRunHealthResult(WorkerStatus.RUNNING)

    def terminate(self, run_id: str) -> bool:
        """Stops a run. One that `tfr run` executes stops itself when it finds that it is to be canceled."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or TERMINAL_TAG not in run.tags or run.is_finished:
            return super().terminate(run_id)
        self._instance.report_run_canceling(run)
        if is_dead(self._instance, run_id):
            end_dead_runs(self._instance)
        return True


class RunCoordinator(dg.QueuedRunCoordinator):
    """Tags also the runs that an asset's page launched with their dataset, so that they wait in the queue.

    "Materialize" in the UI asks for a backfill, which the daemon looks for every 30 seconds; no setting says otherwise.
    Where this is the daemon, it looks more often.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        if daemon := sys.modules.get("dagster._daemon.controller"):
            daemon.DEFAULT_DAEMON_INTERVAL_SECONDS = _SECONDS_BETWEEN_LOOKS  # type: ignore[attr-defined]

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Queues a run, after the dead ones have left."""
        run = context.dagster_run
        end_dead_runs(self._instance)
        datasets = _datasets(context, run)
        if len(datasets) == 1 and (tag := datasets.pop()) != run.tags.get(DATASET_TAG):
            self._instance.add_run_tags(run.run_id, {DATASET_TAG: tag})
        return super().submit_run(context)


def _datasets(context: SubmitRunContext, run: dg.DagsterRun) -> set[str]:
    graph = context.workspace.asset_graph
    keys: Iterable[dg.AssetKey] = {
        *(run.asset_selection or ()), *(check.asset_key for check in run.asset_check_selection or ()),
    }  # fmt: skip
    tags = [run.tags] if DATASET_TAG in run.tags else [graph.get(key).tags for key in keys if graph.has(key)]
    return {queue_tag(each, run.tags) for each in tags if DATASET_TAG in each}
