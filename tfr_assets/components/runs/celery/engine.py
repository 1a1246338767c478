"""Dagster's executor for Celery, with the settings of `settings`, and with steps watched."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import dagster as dg
from celery import Celery
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster_celery.core_execution_loop import core_celery_execution_loop
from dagster_celery.executor import _submit_task

from tfr_assets.components.runs.celery.lost import WatchedResult, Workers
from tfr_assets.components.runs.celery.settings import app_arguments


class CeleryEngine(dg.Executor):
    """Sends each step to Celery's workers.

    Args:
        retries: As Dagster's other executors take it.
    """

    def __init__(self, retries: RetryMode) -> None:
        self._retries = retries

    @property
    def retries(self) -> RetryMode:
        """Whether failed steps are tried again."""
        return self._retries

    @cached_property
    def _arguments(self) -> dict[str, Any]:
        return app_arguments()

    def app_args(self) -> dict[str, Any]:
        """Returns what Dagster's loop makes the app of."""
        return self._arguments

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[dg.DagsterEvent]:
        """Executes a run; see Dagster's `core_celery_execution_loop`."""
        workers: list[Workers] = []

        def submit(
            app: Celery, context: PlanOrchestrationContext, step: Any, queue: str, priority: int, known_state: Any
        ) -> WatchedResult:
            if not workers:
                workers.append(Workers(app))
            return WatchedResult(step.key, _submit_task(app, context, step, queue, priority, known_state), workers[0])

        yield from core_celery_execution_loop(plan_context, execution_plan, step_execution_fn=submit)
