"""Runs of one dataset are held apart, wherever they were started: two would write the same files at once.

The queue lets one run a dataset through, but `tfr run` does not queue, and a run of several datasets counts for none.
So every run locks its datasets while it executes, or says for which run it waits.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.errors import raise_execution_interrupts
from dagster._core.events import EngineEventData
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.execution.step_dependency_config import StepDependencyConfig

from tfr_assets.components.runs.between_steps import remove_handed_over
from tfr_assets.components.runs.dead_runs import DATASET_TAG, is_stopped, keep_alive
from tfr_assets.components.runs.slices import slice_of
from tfr_assets.errors import TfrError
from tfr_assets.layout import Layout
from tfr_assets.storage.objects.guard import only_while_held
from tfr_assets.storage.run_lock import try_lock
from tfr_assets.urls import url_of
from tfr_assets.writing.dataset import Dataset

WhenFailed = Callable[[PlanOrchestrationContext, dg.DagsterEvent], None]


@dataclass(frozen=True)
class _Held:
    dataset: Dataset
    when_failed: WhenFailed


_held_apart: dict[str, _Held] = {}  # those whose definitions this process has loaded
WAITING = "waiting for"  # how the event starts that names the other run
_POLL_SECONDS = 0.2


def hold_apart(dataset: Dataset, when_failed: WhenFailed) -> None:
    """Has the runs of a dataset that this process executes lock the dataset's own folder, wherever its project is.

    Args:
        dataset: The dataset.
        when_failed: Is called at the end of a run in which steps failed, with the first failure: a step whose process
            was killed cannot tell of it.
    """
    _held_apart[dataset.name] = _Held(dataset, when_failed)


class HeldApart(dg.Executor):
    """Executes runs as another executor does, when no other run works on their datasets; shows that they are alive."""

    def __init__(self, executor: dg.Executor) -> None:
        self._executor = executor

    @property
    def retries(self) -> RetryMode:
        """As the other executor."""
        return self._executor.retries

    @property
    def step_dependency_config(self) -> StepDependencyConfig:
        """As the other executor."""
        return self._executor.step_dependency_config

    def app_args(self) -> dict[str, Any]:
        """As the other executor, if it is Celery's: Dagster's loop asks the run's executor for it."""
        arguments: dict[str, Any] = self._executor.app_args()  # type: ignore[attr-defined]
        return arguments

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[dg.DagsterEvent]:
        """Executes a run as soon as no other one works on its datasets."""
        run, instance, names = plan_context.dagster_run, plan_context.instance, _datasets(plan_context)
        failed = False
        failures: list[dg.DagsterEvent] = []
        checks: list[Callable[[], None]] = []
        keep_alive(instance, run.run_id)
        with ExitStack() as held:
            try:
                for name in names:
                    yield from _hold(name, plan_context, held, checks)
                for event in self._executor.execute(plan_context, execution_plan):
                    for check in checks:
                        check()
                    if event.is_step_failure:
                        failed = True
                        failures.append(event)
                    yield event
                for name, failure in _first_by_dataset(failures, names).items():
                    if name in _held_apart:
                        _held_apart[name].when_failed(plan_context, failure)
                if not failed:
                    yield from _removed(plan_context, names)
            except GeneratorExit:
                raise
            except BaseException:
                failed = True
                raise
            finally:
                if failed and is_stopped(run.run_id):  # else Dagster takes it for a failure
                    instance.report_run_canceling(run, "Stopped in the terminal.")


def _first_by_dataset(failures: list[dg.DagsterEvent], names: list[str]) -> dict[str, dg.DagsterEvent]:
    """Returns the first failure of each dataset of a run; a step is called after its dataset."""
    first: dict[str, dg.DagsterEvent] = {}
    for failure in failures:
        step = str(failure.step_key)
        owners = [name for name in names if re.match(rf"{re.escape(name)}_(_|check_(shards|merged|readers)$)", step)]
        if owners:
            first.setdefault(max(owners, key=len), failure)
    return first


def _datasets(context: PlanOrchestrationContext) -> list[str]:
    """Returns the datasets that a run works on, sorted: two runs never wait for each other."""
    run, assets = context.dagster_run, context.job.get_definition().asset_layer
    keys = {*assets.executable_asset_keys, *(check.asset_key for check in run.asset_check_selection or ())}
    tags = [run.tags, *(assets.get(key).tags for key in keys if assets.has(key))]
    # of a run, the tag names the slice, too
    return sorted({each[DATASET_TAG].partition("/")[0] for each in tags if DATASET_TAG in each})


def _hold(
    name: str, context: PlanOrchestrationContext, held: ExitStack, checks: list[Callable[[], None]]
) -> Iterator[dg.DagsterEvent]:
    path, waits = _layout(name, context.dagster_run).lock, False
    try:
        while isinstance(lock := try_lock(path, context.run_id), str):
            if not waits:
                waits = True
                yield _event(context, f"{WAITING} {lock}, which is working on {name}")
            with raise_execution_interrupts():
                time.sleep(_POLL_SECONDS)
    except OSError as error:  # the step that writes there says what is to be done; or there are no locks
        yield _event(context, f"cannot lock {name}, so another run may write at the same time: {error}")
        return
    held.callback(lock.release)
    if url := url_of(path.parent):
        held.enter_context(only_while_held(url, path.name, context.run_id))  # the page of what failed
    checks.append(lock.check)


def _removed(context: PlanOrchestrationContext, names: list[str]) -> Iterator[dg.DagsterEvent]:
    """Removes what steps have handed over; if a store refuses, the data is there all the same."""
    projects = [_held_apart[name].dataset.project for name in names if name in _held_apart]
    try:
        remove_handed_over(context.run_id, projects[0] if projects else None)
    except TfrError as error:
        yield _event(context, f"what steps handed over stays in the store: {error}")


def _layout(name: str, run: dg.DagsterRun) -> Layout:
    """Returns where that lies which a run works on: a dataset, or one slice of it."""
    if name not in _held_apart:
        return Layout.of(name)
    dataset = _held_apart[name].dataset
    key = slice_of(run.tags)
    return dataset.layout.of_slice(key) if key and key in _slice_keys(dataset) else dataset.layout


def _slice_keys(dataset: Dataset) -> list[str]:
    with suppress(TfrError):  # their folder cannot be listed: the first step says so
        return dataset.slice_keys() if dataset.slices else []
    return []


def _event(context: PlanOrchestrationContext, message: str) -> Any:
    return dg.DagsterEvent.engine_event(context, message, EngineEventData())
