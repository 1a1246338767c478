"""How steps are executed: in processes of this machine (`steps`), by Celery's workers (`celery`), or by Kubernetes."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.execution.retries import get_retries_config
from dagster._core.execution.step_dependency_config import get_step_dependency_config_field
from dagster._core.execution.tags import get_tag_concurrency_limits_config

from tfr_assets.components.runs.steps.crew import PRELOAD
from tfr_assets.errors import ConfigError, suggestion
from tfr_assets.packages import need

if TYPE_CHECKING:
    from dagster._core.executor.base import Executor

WORKERS_VARIABLE, EXECUTOR_VARIABLE = "TFR_WORKERS", "TFR_EXECUTOR"
_CONFIG = {
    "max_concurrent": dg.Field(
        dg.Noneable(int), default_value=None, description="How many steps run at once; by default $TFR_WORKERS."
    ),
    "tag_concurrency_limits": get_tag_concurrency_limits_config(),
    "retries": get_retries_config(),
    "step_dependency_config": get_step_dependency_config_field(),
}


def build_executor() -> dg.ExecutorDefinition:
    """Returns the executor that `$TFR_EXECUTOR` names.

    `local`, the default: processes of this machine; `$TFR_WORKERS` says how many steps run at once, by default one a
    processor. `celery`: Celery's workers, on as many machines as you like. `k8s`: Dagster's `k8s_job_executor`, a pod
    for each step. See docs/operation.md.

    Raises:
        ConfigError: There is none of that name.
        MissingPackage: The package that it needs is not installed.
    """
    name = os.environ.get(EXECUTOR_VARIABLE) or "local"
    executors = {"local": lambda: warm_workers, "celery": lambda: celery_workers, "k8s": _k8s_jobs}
    if name not in executors:
        raise ConfigError(f"{EXECUTOR_VARIABLE}={name!r}: {suggestion(name, executors, 'set it to one of')}")
    if name != "local":
        need(f"dagster_{name}", f"dagster-{name}", f"{EXECUTOR_VARIABLE}={name}", f"pip install 'tfr-assets[{name}]'")
    return executors[name]()


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


@dg.executor(
    name="celery_workers",
    config_schema={"retries": get_retries_config()},
    requirements=dg.multiple_process_executor_requirements(),
)
def celery_workers(context: dg.InitExecutorContext) -> "Executor":
    """Executes each step in one of Celery's workers, wherever they run."""
    from dagster._core.execution.retries import RetryMode

    from tfr_assets.components.runs.celery.engine import CeleryEngine
    from tfr_assets.components.runs.held_apart import HeldApart

    config: Mapping[str, Any] = context.executor_config
    return HeldApart(CeleryEngine(RetryMode.from_config(config["retries"]) or RetryMode.ENABLED))


def _k8s_jobs() -> dg.ExecutorDefinition:
    """Returns Dagster's `k8s_job_executor`, with all its settings, for runs that are held apart."""
    from dagster_k8s import K8sRunLauncher, k8s_job_executor

    settings: Any = k8s_job_executor.config_schema

    @dg.executor(
        name="k8s_jobs",
        config_schema=settings,
        requirements=dg.multiple_process_executor_requirements(),
    )
    def k8s_jobs(context: dg.InitExecutorContext) -> "Executor":
        from tfr_assets.components.runs.held_apart import HeldApart

        if not isinstance(context.instance.run_launcher, K8sRunLauncher):  # Dagster would fail for a missing attribute
            raise ConfigError(
                f"{EXECUTOR_VARIABLE}=k8s needs the run launcher of dagster-k8s: write `run_launcher:` into "
                "dagster.yaml as deploy/k8s/dagster.yaml has it"
            )
        create = k8s_job_executor.executor_creation_fn
        assert create
        return HeldApart(create(context))

    return k8s_jobs
