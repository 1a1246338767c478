"""Runs a dataset's jobs from a terminal, on the same instance and data as the UI.

refresh   raw → shards → checks → merged → checks     one run
readers   measured in a run of their own
"""

import os
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableJob
from dagster._core.execution.api import execute_run
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import MAX_RETRIES_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.utils import make_new_run_id
from dagster._utils.error import SerializableErrorInfo
from sqlalchemy.exc import DBAPIError

from tfr_assets.cli.signals import stop_signal, stopped_once
from tfr_assets.components.assets.jobs import ALL_STEPS, all_partitions, raw_job, readers_job, refresh_job
from tfr_assets.components.config.load import forget_definitions, load_definitions
from tfr_assets.components.runs.dead_runs import DATASET_TAG, TERMINAL_TAG, alive
from tfr_assets.components.runs.held_apart import WAITING
from tfr_assets.components.runs.slices import register, run_tag
from tfr_assets.components.runs.steps.warm_executor import STOPPING
from tfr_assets.errors import ConfigError
from tfr_assets.project import current_project
from tfr_assets.units import StepProgress
from tfr_assets.urls import place_of
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.sizing import as_planned

_STOPPED = {"DagsterExecutionInterruptedError", "KeyboardInterrupt", "WorkerDied", "TemplateDied"}  # by the same signal
_POLL_SECONDS = 0.1
_SHOWN = (WAITING, STOPPING)  # how events start that are shown in place of a step
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}  # the terminal shows a bar; the UI has the log
_OTHER_STEPS = 6  # of a refresh, besides one per shard: raw, plan, commit, merged, and the checks of shards and merged
_ABOUT_READERS = ("readers", "reader_report")
_READER_STEPS = 3  # readers, their checks, the report


@dataclass
class Made:
    """What was materialized of one asset.

    Attributes:
        asset: Its name within the dataset, such as `shards`.
        partitions: How many of it; 1 for an asset without partitions.
        files: How many files these are.
        skipped: How many of these were there already.
        records: Records in all of them.
        bytes: Their size.
        path: Where they lie.
        seconds: Wall time from the beginning of its first step to the end of its last.
        records_per_second: How fast the best reader was; of `reader_report`, the recommended one.
    """

    asset: str
    partitions: int = 0
    files: int = 0
    skipped: int = 0
    records: int = 0
    bytes: int = 0
    path: str = ""
    seconds: float = 0.0
    records_per_second: float | None = None


@dataclass
class Outcome:
    """The result of a dataset's runs.

    Attributes:
        dataset: Its name.
        slice: The slice that was made; None where raw data does not come in slices.
        ok: Whether every step and every blocking check succeeded.
        interrupted: Whether somebody stopped it: by Ctrl-C, another signal, or in the UI.
        made: The assets, in the order in which they were begun.
        checks: Evaluations by `asset/check`: partition (None where there are none) to whether it passed.
        failures: What failed, one text each.
        run_ids: The runs, for the UI.
        report: The page that shows all of it; empty where there is none.
    """

    dataset: str
    slice: str | None = None
    ok: bool = True
    interrupted: bool = False
    made: list[Made] = field(default_factory=list)
    checks: dict[str, dict[str | None, bool]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    report: str = ""


def reconstruct_job(dataset: str, job_name: str) -> dg.JobDefinition:
    """Returns a job of a dataset. The processes of steps find it through this, too."""
    return load_definitions(dataset).resolve_job_def(job_name)


def run_dataset(dataset: Dataset, instance: dg.DagsterInstance, readers: bool, progress: StepProgress) -> Outcome:
    """Materializes everything of a dataset.

    Args:
        dataset: The dataset.
        instance: Where runs and events are recorded.
        readers: Whether to measure the readers, too.
        progress: Called for every step.

    Returns:
        What was made and what failed. A step that fails raises nothing here.
    """
    outcome = Outcome(dataset.name, dataset.slice)
    register(dataset, [dataset.slice] if dataset.slice else [], instance)
    bench = _readers_job(dataset) if readers else None
    if dataset.auto:  # the number of shards, and with it that of the steps, is known only then
        dataset = run_raw(dataset, instance, outcome, progress)
    if outcome.ok:
        steps = -(-len(dataset.shard_keys) // dataset.shards_per_step) + _OTHER_STEPS + (dataset.publish is not None)
        _run(refresh_job(dataset.name), steps, outcome, instance, progress)
    if outcome.ok and bench:
        _run(bench.name, _READER_STEPS, outcome, instance, progress)
    dataset.catch_up()
    if dataset.layout.report.is_file():
        outcome.report = place_of(dataset.layout.report)
    return outcome


def _readers_job(dataset: Dataset) -> dg.JobDefinition:
    try:
        return reconstruct_job(dataset.name, readers_job(dataset.name))
    except dg.DagsterError as error:
        raise ConfigError(
            f"the readers of {dataset.name} are not measured in runs: its YAML has no `bench: {{readers: {{}}}}`. Add "
            f"that line, or measure them with `tfr bench readers {dataset.name}`"
        ) from error


def run_raw(dataset: Dataset, instance: dg.DagsterInstance, outcome: Outcome, progress: StepProgress) -> Dataset:
    """Materializes the raw data of a dataset alone, which plans the number of shards where that is `auto`.

    Args:
        dataset: The dataset.
        instance: Where runs and events are recorded.
        outcome: Gets what was made and what failed.
        progress: Called for every step.

    Returns:
        The dataset with the planned number of shards.
    """
    register(dataset, [dataset.slice] if dataset.slice else [], instance)
    _run(raw_job(dataset.name), 1, outcome, instance, progress)
    dataset.catch_up()
    return as_planned(dataset)


def _run(job_name: str, steps: int, outcome: Outcome, instance: dg.DagsterInstance, progress: StepProgress) -> None:
    run_id = make_new_run_id()
    over = threading.Event()
    follower = threading.Thread(target=_follow, args=(instance, run_id, steps, progress, over), daemon=True)
    with stopped_once(), alive(instance, run_id, stopped=lambda: stop_signal() is not None):
        job, created = _create_run(outcome.dataset, outcome.slice, job_name, run_id, instance)
        follower.start()
        try:
            with suppress(KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
                execute_run(job, created, instance)
        finally:
            over.set()
            follower.join()
            _end_if_unfinished(run_id, instance)
    outcome.run_ids.append(run_id)
    outcome.interrupted = stop_signal() is not None
    _collect(run_id, outcome, instance)
    run = instance.get_run_by_id(run_id)
    outcome.ok = outcome.ok and run is not None and run.is_success
    if outcome.ok:
        progress("", steps, steps)


def _create_run(
    dataset: str, slice_: str | None, job_name: str, run_id: str, instance: dg.DagsterInstance
) -> tuple[ReconstructableJob, dg.DagsterRun]:
    """Records a run of all partitions, or of one slice, as the UI would, so that the UI counts it for the job."""
    forget_definitions()  # the run before may have planned another number of shards
    arguments: Any = (dataset, job_name)
    job = dg.build_reconstructable_job(__name__, reconstruct_job.__name__, arguments, {})
    loaded = job.repository.get_definition().repository_load_data
    definition = job.get_definition()
    # of the definitions that the run has: the YAML may have been edited since the command began
    keys = list(definition.partitions_def.get_partition_keys()) if definition.partitions_def and not slice_ else []
    run = instance.create_run_for_job(
        job_def=definition,
        run_id=run_id,
        run_config=_QUIET,
        tags={
            **ALL_STEPS,
            DATASET_TAG: run_tag(dataset, slice_),  # which the queue counts the run by
            **({"dagster/partition": slice_} if slice_ else all_partitions(keys) if keys else {}),
            TERMINAL_TAG: f"{socket.gethostname()}, process {os.getpid()}",
            MAX_RETRIES_TAG: "0",  # the user at the terminal decides whether to run it again
        },
        remote_job_origin=_origin().get_job_origin(job_name),
        job_code_origin=job.get_python_origin(),
        repository_load_data=loaded,
    )
    return job.with_repository_load_data(loaded), run


def _origin() -> RemoteRepositoryOrigin:
    """Returns where the UI finds the jobs: the project names the location, Dagster the repository."""
    project = current_project()
    target = LoadableTargetOrigin(module_name=project.definitions_module)
    return RemoteRepositoryOrigin(ManagedGrpcPythonEnvCodeLocationOrigin(target, project.location), "__repository__")


def _end_if_unfinished(run_id: str, instance: dg.DagsterInstance) -> None:
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return
    if stop_signal() is None:
        instance.report_run_failed(
            run, "The command that executed this run ended with an error; its terminal shows it."
        )
    else:
        instance.report_run_canceled(run, "Stopped in the terminal.")


def _follow(
    instance: dg.DagsterInstance, run_id: str, steps: int, progress: StepProgress, over: threading.Event
) -> None:
    """Reads a run's events as they come, tells how far it is, and stops it when it is canceled in the UI."""
    cursor, done = None, 0
    while not over.wait(_POLL_SECONDS):
        try:
            records = instance.get_records_for_run(run_id, cursor=cursor)
        except DBAPIError:  # the run itself says so when it needs the database
            continue
        cursor = records.cursor
        for event in filter(None, (record.event_log_entry.dagster_event for record in records.records)):
            done += event.event_type in (dg.DagsterEventType.STEP_SUCCESS, dg.DagsterEventType.STEP_FAILURE)
            if event.event_type is dg.DagsterEventType.STEP_START and event.step_key:
                progress(event.step_key.split("__")[-1], done, steps)
            elif event.event_type is dg.DagsterEventType.ENGINE_EVENT and (event.message or "").startswith(_SHOWN):
                progress(str(event.message), done, steps)
            elif event.event_type is dg.DagsterEventType.RUN_CANCELING and stop_signal() is None:
                os.kill(os.getpid(), signal.SIGINT)


def _collect(run_id: str, outcome: Outcome, instance: dg.DagsterInstance) -> None:
    """Adds to the outcome what a run recorded."""
    latest: dict[tuple[str, str | None], Any] = {}
    cursor, more = None, True
    while more:
        records = instance.get_records_for_run(run_id, cursor=cursor)
        cursor, more = records.cursor, records.has_more
        for event in filter(None, (record.event_log_entry.dagster_event for record in records.records)):
            if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
                materialization = event.step_materialization_data.materialization
                if materialization.asset_key.path[0] == outcome.dataset:  # not what comes before its raw data
                    latest[materialization.asset_key.path[-1], materialization.partition] = materialization.metadata
            elif event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                check = event.asset_check_evaluation_data
                name = f"{check.asset_key.path[-1]}/{check.check_name}"
                outcome.checks.setdefault(name, {})[check.partition] = check.passed
            elif event.event_type is dg.DagsterEventType.STEP_FAILURE:
                error = event.step_failure_data.error
                if not (outcome.interrupted and error and _root(error).cls_name in _STOPPED):
                    outcome.failures.append(f"{event.step_key}: {_why(event.step_failure_data)}")
            elif event.event_type is dg.DagsterEventType.RUN_FAILURE and not outcome.failures:
                outcome.failures.append(_why_run(event))
    by_asset: dict[str, Made] = {}
    for (asset, _), metadata in latest.items():
        _add(by_asset.setdefault(asset, Made(asset)), {name: value.value for name, value in metadata.items()})
    for made in by_asset.values():
        made.seconds = _wall_seconds(f"{outcome.dataset}__{made.asset}", run_id, instance)
    outcome.made = [made for made in outcome.made if made.asset not in by_asset] + list(by_asset.values())


def _add(made: Made, metadata: dict[str, Any]) -> None:
    made.partitions += 1
    made.files += int(metadata.get("files", 1))
    made.skipped += metadata.get("written") is False
    of_all = metadata.get("dagster/row_count", 0)
    records, size = int(metadata.get("dagster/partition_row_count", of_all)), int(metadata.get("dagster/size_bytes", 0))
    path = str(metadata.get("dagster/uri", ""))
    made.path = path if made.partitions == 1 else path.rpartition("/")[0]
    if made.asset in _ABOUT_READERS:  # all read the same records
        made.records, made.bytes = max(made.records, records), max(made.bytes, size)
        made.records_per_second = max(made.records_per_second or 0.0, metadata.get("records_per_second", 0.0))
    else:
        made.records += records
        made.bytes += size


def _wall_seconds(prefix: str, run_id: str, instance: dg.DagsterInstance) -> float:
    stats = [
        s for s in instance.get_run_step_stats(run_id) if s.step_key == prefix or s.step_key.startswith(f"{prefix}.")
    ]
    started = [s.start_time for s in stats if s.start_time]
    ended = [s.end_time for s in stats if s.end_time]
    return max(ended) - min(started) if started and ended else 0.0


def _why(failure: Any) -> str:
    if failure.user_failure_data and failure.user_failure_data.description:
        return failure.user_failure_data.description
    return _root(failure.error).message.strip() if failure.error else "failed"


def _why_run(event: dg.DagsterEvent) -> str:
    error = event.job_failure_data.error
    return _root(error).message.strip() if error else event.message or f"{event.job_name} failed"


def _root(error: SerializableErrorInfo) -> SerializableErrorInfo:
    """Returns the exception that others were raised because of: Dagster's say only that there was one."""
    while error.cause:
        error = error.cause
    return error
