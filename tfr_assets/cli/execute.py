"""Runs a dataset's jobs from a terminal, on the same instance and data as the UI.

refresh   raw → shards → checks → merged → checks     one run
readers   measured in a run of their own
"""

import os
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
from yaml import YAMLError

from tfr_assets.components.jobs import all_partitions, raw_job, readers_job, refresh_job
from tfr_assets.components.load import PROJECT
from tfr_assets.components.look import Look
from tfr_assets.errors import ConfigError
from tfr_assets.layout import DATA_VARIABLE, data_root
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.sizing import as_planned

_INVOCATION = "tfr/invocation"
_POLL_SECONDS = 0.1
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}  # the terminal shows a bar; the UI has the log
_OTHER_STEPS = 6  # of a refresh, besides one a shard: raw, plan, commit, merged, and the checks of shards and merged
_ABOUT_READERS = ("readers", "reader_report")
_READER_STEPS = 3  # readers, their checks, the report

Progress = Callable[[str, int, int], None]
"""Called with what is being done, the number of steps done, and of all steps."""


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
    """What came of a dataset's runs.

    Attributes:
        dataset: Its name.
        ok: Whether every step and every blocking check succeeded.
        interrupted: Whether somebody stopped it, by Ctrl-C for one.
        made: The assets, in the order in which they were begun.
        checks: Evaluations by `asset/check`: partition (None where there are none) to whether it passed.
        failures: What failed, one text each.
        run_ids: The runs, for the UI.
    """

    dataset: str
    ok: bool = True
    interrupted: bool = False
    made: list[Made] = field(default_factory=list)
    checks: dict[str, dict[str | None, bool]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)


def dagster_home() -> Path:
    """Returns `$DAGSTER_HOME`, by default the project; set but empty counts as unset."""
    return Path(os.environ.get("DAGSTER_HOME") or PROJECT)


def open_instance() -> dg.DagsterInstance:
    """Returns the instance of `$DAGSTER_HOME`, by default the project's own; `make ui` shows the same one.

    Raises:
        ConfigError: There is no such folder, or its `dagster.yaml` cannot be understood.
    """
    home = dagster_home()
    os.environ["DAGSTER_HOME"] = str(home)
    if os.environ.get(DATA_VARIABLE):
        os.environ[DATA_VARIABLE] = str(data_root())  # the same folder for the steps, wherever they are started
    if home == PROJECT:
        os.chdir(PROJECT)  # the paths in the project's dagster.yaml are relative
    try:
        return dg.DagsterInstance.get()
    except (dg.DagsterError, YAMLError) as error:
        raise ConfigError(f"DAGSTER_HOME={home}: {error}") from error


def reconstruct_job(job_name: str) -> dg.JobDefinition:
    """Returns a job of the project. Every step's process finds its job through this."""
    from tfr_assets.definitions import defs

    return defs().resolve_job_def(job_name)


def run_dataset(dataset: Dataset, instance: dg.DagsterInstance, readers: bool, progress: Progress) -> Outcome:
    """Materializes everything of a dataset.

    Args:
        dataset: The dataset.
        instance: Where runs and events are recorded.
        readers: Whether to measure the readers, too.
        progress: Told about every step.

    Returns:
        What was made and what failed. A step that fails raises nothing here.
    """
    outcome = Outcome(dataset.name)
    bench = _readers_job(dataset) if readers else None
    if dataset.auto:  # the number of shards, and with it that of the steps, is known only then
        dataset = run_raw(dataset, instance, outcome, progress)
    if outcome.ok:
        steps = len(dataset.shard_keys) + _OTHER_STEPS
        _run(refresh_job(dataset.name), Look(dataset).partition_keys, steps, outcome, instance, progress)
    if outcome.ok and bench:
        keys = list(bench.partitions_def.get_partition_keys()) if bench.partitions_def else []
        _run(bench.name, keys, _READER_STEPS, outcome, instance, progress)
    return outcome


def _readers_job(dataset: Dataset) -> dg.JobDefinition:
    try:
        return reconstruct_job(readers_job(dataset.name))
    except dg.DagsterError as error:
        raise ConfigError(
            f"the readers of {dataset.name} are not measured in runs: its YAML has no `bench: {{readers: {{}}}}`. Add "
            f"that line, or measure them with `tfr bench readers {dataset.name}`"
        ) from error


def run_raw(dataset: Dataset, instance: dg.DagsterInstance, outcome: Outcome, progress: Progress) -> Dataset:
    """Materializes the raw data of a dataset alone, which plans the number of shards where that is `auto`.

    Args:
        dataset: The dataset.
        instance: Where runs and events are recorded.
        outcome: Gets what was made and what failed.
        progress: Told about every step.

    Returns:
        The dataset with the planned number of shards.
    """
    _run(raw_job(dataset.name), [], 1, outcome, instance, progress)
    return as_planned(dataset)


def _run(
    job_name: str, keys: list[str], steps: int, outcome: Outcome, instance: dg.DagsterInstance, progress: Progress
) -> None:
    job = dg.build_reconstructable_job(__name__, reconstruct_job.__name__, (job_name,), {})
    invocation = uuid.uuid4().hex
    over = threading.Event()
    follower = threading.Thread(target=_follow, args=(instance, invocation, steps, progress, over), daemon=True)
    follower.start()
    try:
        tags = {**(all_partitions(keys) if keys else {}), _INVOCATION: invocation}
        with dg.execute_job(job, instance=instance, tags=tags, run_config=_QUIET) as result:
            run_id = result.run_id
    finally:
        over.set()
        follower.join()
    outcome.run_ids.append(run_id)
    outcome.ok = outcome.ok and result.success
    _collect(run_id, outcome, instance)
    if result.success:
        progress("", steps, steps)
    elif not outcome.failures:  # a run that nothing made fail was stopped
        outcome.interrupted = True


def _follow(
    instance: dg.DagsterInstance, invocation: str, steps: int, progress: Progress, over: threading.Event
) -> None:
    """Reads a run's events as they come and tells how far it is."""
    run_id, cursor, done = None, None, 0
    while not over.wait(_POLL_SECONDS):
        if run_id is None:
            runs = instance.get_runs(dg.RunsFilter(tags={_INVOCATION: invocation}), limit=1)
            run_id = runs[0].run_id if runs else None
            continue
        records = instance.get_records_for_run(run_id, cursor=cursor)
        cursor = records.cursor
        for event in filter(None, (record.event_log_entry.dagster_event for record in records.records)):
            done += event.event_type in (dg.DagsterEventType.STEP_SUCCESS, dg.DagsterEventType.STEP_FAILURE)
            if event.event_type is dg.DagsterEventType.STEP_START and event.step_key:
                progress(event.step_key.split("__")[-1], done, steps)


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
                if _is_interruption(event.step_failure_data):
                    outcome.interrupted = True
                else:
                    outcome.failures.append(f"{event.step_key}: {_why(event.step_failure_data)}")
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
    made.path = path if made.partitions == 1 else str(Path(path).parent)
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


def _is_interruption(failure: Any) -> bool:
    return failure.error is not None and failure.error.cls_name == dg.DagsterExecutionInterruptedError.__name__


def _why(failure: Any) -> str:
    if failure.user_failure_data and failure.user_failure_data.description:
        return failure.user_failure_data.description
    return failure.error.message.strip() if failure.error else "failed"
