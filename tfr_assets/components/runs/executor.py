"""How steps are executed: in processes of this machine (`steps`), by Celery (`celery`), by Kubernetes, or by Ray."""

import os
from collections.abc import Callable, Mapping
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
    for each step. `ray`: dagster-ray's `ray_executor`, a job for each. See docs/operation.md.

    Raises:
        ConfigError: There is none of that name.
        MissingPackage: The package that it needs is not installed.
    """
    name = os.environ.get(EXECUTOR_VARIABLE) or "local"
    executors = {"local": lambda: warm_workers, "celery": lambda: celery_workers, "k8s": _k8s_jobs, "ray": _ray_jobs}
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

    def create(context: dg.InitExecutorContext) -> "Executor":
        if not isinstance(context.instance.run_launcher, K8sRunLauncher):  # Dagster would fail for a missing attribute
            raise ConfigError(
                f"{EXECUTOR_VARIABLE}=k8s needs the run launcher of dagster-k8s: write `run_launcher:` into "
                "dagster.yaml as deploy/k8s/dagster.yaml has it"
            )
        return _created(k8s_job_executor, context)

    return _held_apart("k8s_jobs", k8s_job_executor, create)


def _ray_jobs() -> dg.ExecutorDefinition:
    """Returns dagster-ray's `ray_executor`, with all its settings, for runs that are held apart."""
    from dagster_ray import ray_executor

    def create(context: dg.InitExecutorContext) -> "Executor":
        # without a number of processors, Ray starts every job on the head of the cluster
        config: Mapping[str, Any] = context.executor_config
        said = {name: value for name, value in config["ray"].items() if value is not None}
        return _created(ray_executor, context._replace(executor_config={**config, "ray": {"num_cpus": 1, **said}}))

    return _held_apart("ray_jobs", ray_executor, create)


def _created(executor: dg.ExecutorDefinition, context: dg.InitExecutorContext) -> "Executor":
    create = executor.executor_creation_fn
    assert create
    return create(context)


def _held_apart(
    name: str, executor: dg.ExecutorDefinition, create: "Callable[[dg.InitExecutorContext], Executor]"
) -> dg.ExecutorDefinition:
    settings: Any = executor.config_schema

    @dg.executor(name=name, config_schema=settings, requirements=dg.multiple_process_executor_requirements())
    def held_apart(context: dg.InitExecutorContext) -> "Executor":
        from tfr_assets.components.runs.held_apart import HeldApart

        return HeldApart(create(context))

    return held_apart
