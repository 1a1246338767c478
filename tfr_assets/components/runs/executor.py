"""How steps are executed; `steps` has the machinery."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.execution.retries import get_retries_config
from dagster._core.execution.step_dependency_config import get_step_dependency_config_field
from dagster._core.execution.tags import get_tag_concurrency_limits_config

from tfr_assets.components.runs.steps.crew import PRELOAD

if TYPE_CHECKING:
    from dagster._core.executor.base import Executor

WORKERS_VARIABLE = "TFR_WORKERS"
_CONFIG = {
    "max_concurrent": dg.Field(
        dg.Noneable(int), default_value=None, description="How many steps run at once; by default $TFR_WORKERS."
    ),
    "tag_concurrency_limits": get_tag_concurrency_limits_config(),
    "retries": get_retries_config(),
    "step_dependency_config": get_step_dependency_config_field(),
}


def build_executor() -> dg.ExecutorDefinition:
    """Returns the executor; `$TFR_WORKERS` says how many steps run at once, by default one a processor."""
    return warm_workers


@dg.executor(name="warm_workers", config_schema=_CONFIG, requirements=dg.multiple_process_executor_requirements())
def warm_workers(context: dg.InitExecutorContext) -> "Executor":
    """Executes each step in a process that executes no other at the time, and is kept for the next one."""
    from dagster._core.execution.retries import RetryMode
    from dagster._core.execution.step_dependency_config import StepDependencyConfig

    from tfr_assets.components.runs.held_apart import HeldApart
    from tfr_assets.components.runs.steps.warm_executor import WarmExecutor

    config: Mapping[str, Any] = context.executor_config
    workers = WarmExecutor(
        preload=PRELOAD,
        max_concurrent=config["max_concurrent"] or int(os.environ.get(WORKERS_VARIABLE) or os.cpu_count() or 1),
        retry_mode=RetryMode.from_config(config["retries"]) or RetryMode.ENABLED,
        tag_limits=config.get("tag_concurrency_limits") or [],
        dependencies=StepDependencyConfig.from_config(config.get("step_dependency_config")),
    )
    return HeldApart(workers)
