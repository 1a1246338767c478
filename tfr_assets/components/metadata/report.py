"""The page `report.html` beside a dataset's data: what the UI shows on several pages, partly after a click.

It is written after each refresh, verification and report of readers, by the step that has the last of the facts, by
steps that fail, and by the run where a step was killed. Facts of assets and checks come from Dagster, those of files
from their manifests.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import dagster as dg
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus as Status
from sqlalchemy.exc import DBAPIError

from tfr_assets.components.attributes import Look
from tfr_assets.components.metadata.html import facts, page, paragraph, subsection, table, text
from tfr_assets.components.runs.while_held import while_held
from tfr_assets.errors import TfrError
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.verdicts import CHECKS, CURRENT, Check
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.units import megabytes
from tfr_assets.urls import named

_MOST_ROWS = 200  # of a table of shards or failed checks
_PAUSE = 0.01  # seconds a shard between two pages of a run in which many steps fail: a page reads all manifests
_FACTS = {  # of raw, in plain words
    "dagster/uri": "source",
    "dagster/row_count": "rows",
    "dagster/size_bytes": "bytes",
    "files": "files",
    "skipped": "files left out",
    "fingerprint": "fingerprint",
}
_PICTURE = "![", "](data:image/png;"

Metadata = Mapping[str, Any]


class _Context(Protocol):
    @property
    def instance(self) -> dg.DagsterInstance: ...

    @property
    def run(self) -> dg.DagsterRun: ...

    @property
    def job_def(self) -> dg.JobDefinition: ...

    @property
    def log(self) -> dg.DagsterLogManager: ...


@dataclass(frozen=True)
class _Checked:
    """What a check found last: in how many partitions it was evaluated, and why it failed in which."""

    asset: str
    check: Check
    total: int
    failed: Mapping[str, str]

    @property
    def state(self) -> str:
        return ("failed" if self.check.blocking else "warning") if self.failed else "passed"


@contextmanager
def report_failure(look: Look, context: _Context, part: str) -> Iterator[None]:
    """Writes a dataset's page when a step fails, so that it does not go on to show what was there before.

    Of many steps of a run that fail one after the other, some write it.

    Args:
        look: The dataset.
        context: Of the step.
        part: What the step makes.
    """
    try:
        yield
    except Exception as error:
        failed = _failed(context.run)
        if not _was_just_written(look, failed):
            more = "What its other steps did after that may be missing here."
            write_report(look, context, failure=f"{failed} at {part}: {str(error) or error.__cause__} – {more}")
        raise


def report_run_failure(look: Look, context: PlanOrchestrationContext, failure: dg.DagsterEvent) -> None:
    """Writes a dataset's page when a run has failed, unless a step of it has done so.

    Args:
        look: The dataset.
        context: Of the run.
        failure: The first step that failed.
    """
    failed = _failed(context.dagster_run)
    try:
        look = look.in_run(context.dagster_run)
    except dg.Failure:  # there is no such slice: the run said so
        return
    with suppress(OSError):
        if failed.encode() in look.dataset.layout.report.read_bytes():
            return
    error = failure.step_failure_data.error
    while error and error.cause:  # Dagster's own only says that there was one
        error = error.cause
    step = str(failure.step_key).rpartition(".")[2]
    says = f"{failed} at {step}: {error.message.strip() if error else 'its log says more'}"
    run = _Run(context.instance, context.dagster_run, context.job.get_definition(), context.log)
    write_report(look, run, failure=says)


@dataclass(frozen=True)
class _Run:
    """What the process of a run has in place of a step's context."""

    instance: dg.DagsterInstance
    run: dg.DagsterRun
    job_def: dg.JobDefinition
    log: dg.DagsterLogManager


def _failed(run: dg.DagsterRun) -> str:
    return f"Run {run.run_id[:8]} failed"


def _was_just_written(look: Look, words: str) -> bool:
    """Whether a page with these words was written a moment ago."""
    path = look.dataset.layout.report
    with suppress(OSError):
        age = time.time() - path.stat().st_ctime  # its time of change is the object's, where it stands in for one
        return 0 <= age < _PAUSE * len(look.current.shard_keys) and words.encode() in path.read_bytes()
    return False


def write_report(look: Look, context: _Context, known: Mapping[str, Metadata] | None = None, failure: str = "") -> None:
    """Writes a dataset's page. If disk or database refuse, or the lock was lost, the log says so: the data counts.

    Args:
        look: The dataset.
        context: Of the step that does it.
        known: Metadata of assets that Dagster does not know yet, by the last part of their keys.
        failure: Why the run fails, if it does.
    """
    try:
        report = build_report(look, context.instance, known or {}, failure)
        with while_held(context, look.dataset.layout):
            write_atomically(look.dataset.layout.report, named(report).encode())
    except DBAPIError as error:
        context.log.warning(f"{look.dataset.layout.report} is not up to date: Dagster's database: {error.orig}")
    except (TfrError, OSError) as error:
        context.log.warning(f"{look.dataset.layout.report} is not up to date: {error}")


def build_report(look: Look, instance: dg.DagsterInstance, known: Mapping[str, Metadata], failure: str = "") -> str:
    """Returns a dataset's page as HTML; see `write_report`."""
    parts = ("raw", "merged", "reader_report")
    raw, merged, readers = (known[part] if part in known else _metadata(look, part, instance) for part in parts)
    checks = list(_checks(look, instance))
    sections = [
        ("Checks", _checks_section(checks)),
        ("Raw data", _raw_section(raw)),
        ("Plan", text(str(raw["plan"])) if "plan" in raw else paragraph("Nothing is planned yet.")),
        (
            "Shards",
            _files_section(look, [(key, look.dataset.layout.shard_path(key)) for key in look.current.shard_keys]),
        ),
        (
            "Merged",
            _files_section(look, [(split, look.dataset.layout.merged_path(split)) for split in look.dataset.splits]),
        ),
    ]
    if readers:
        sections.append(("Readers", _readers_section(readers)))
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    about = (paragraph(look.description) if look.description else "") + paragraph(f"{_records(merged)}As of {written}.")
    return page(look.dataset.title, about + (paragraph(failure, "failed") if failure else ""), sections)


def _records(merged: Metadata) -> str:
    records, size = merged.get("dagster/row_count"), merged.get("dagster/size_bytes")
    if records is None or size is None:  # not merged yet, or by an earlier version
        return ""
    return f"{records:,} records, {megabytes(size)}. "


def _metadata(look: Look, part: str, instance: dg.DagsterInstance) -> Metadata:
    found = latest_materialization(look, part, instance)
    return {name: value.value for name, value in found.metadata.items()} if found else {}


def latest_materialization(look: Look, part: str, instance: dg.DagsterInstance) -> dg.AssetMaterialization | None:
    """Returns how an asset was materialized last; of a slice, how the slice was."""
    if look.partition is None:
        event = instance.get_latest_materialization_event(look.key(part))
        return event.asset_materialization if event else None
    wanted = dg.AssetRecordsFilter(asset_key=look.key(part), asset_partitions=[look.partition])
    records = instance.fetch_materializations(wanted, limit=1).records
    return records[0].asset_materialization if records else None


def _checks(look: Look, instance: dg.DagsterInstance) -> Iterator[_Checked]:
    checks = [*(("shards", each) for each in (*CHECKS, CURRENT)), *(("merged", each) for each in CHECKS)]
    keyed = [(dg.AssetCheckKey(look.key(part), check.name), part, check) for part, check in checks]
    infos = instance.event_log_storage.get_asset_check_partition_info([key for key, *_ in keyed])
    for key, part, check in keyed:
        status = {info.partition_key: info.latest_execution_status for info in infos if info.check_key == key}
        keys: list[str | None] = [look.partition]
        if check is CURRENT:
            keys = [None]
        elif part == "shards":
            keys = [*look.partition_keys]
        evaluated = [each for each in keys if status.get(each) in (Status.SUCCEEDED, Status.FAILED)]
        failed = [each for each in evaluated if status[each] is Status.FAILED]
        if evaluated:
            yield _Checked(part, check, len(evaluated), _reasons(key, failed, instance))


def _reasons(key: dg.AssetCheckKey, failed: list[str | None], instance: dg.DagsterInstance) -> dict[str, str]:
    """Returns why a check failed, by partition; of very many, a part."""
    reasons = {partition or "": "" for partition in failed}
    storage = instance.event_log_storage
    for record in storage.get_asset_check_execution_history(key, _MOST_ROWS, status={Status.FAILED}) if failed else ():
        partition = record.partition or ""
        if record.evaluation and reasons.get(partition) == "":  # the latest comes first
            reasons[partition] = record.evaluation.description or "failed"
    return reasons


def _checks_section(checks: list[_Checked]) -> str:
    if not checks:
        return paragraph("Nothing was checked yet.")
    lines = [
        (
            each.asset,
            each.check.name,
            each.state,
            f"{each.total - len(each.failed)} of {each.total}",
            each.check.description,
        )
        for each in checks
    ]
    shown = table(["asset", "check", "state", "passed", "what it looks at"], lines)
    wrong = [(each.asset, each.check.name, *why) for each in checks for why in each.failed.items()]
    if not wrong:
        return shown
    return shown + subsection("What failed", _capped(["asset", "check", "partition", "why"], wrong))


def _raw_section(raw: Metadata) -> str:
    if not raw:
        return paragraph("Raw data was not looked at yet.")
    shown = [facts((words, raw[name]) for name, words in _FACTS.items() if name in raw)]
    if "warnings" in raw:
        shown.append(subsection("Warnings", text(str(raw["warnings"]))))
    if "first_skipped" in raw:
        shown.append(subsection("The first files that were left out", text(str(raw["first_skipped"]))))
    for name in ("preview", *(name for name, value in raw.items() if _is_drawn(name, value))):
        shown.append(subsection(name, text(str(raw[name]))))
    return "\n".join(shown)


def _is_drawn(name: str, value: Any) -> bool:
    """Whether it is a picture of records, or a text of them."""
    return isinstance(value, str) and (all(part in value for part in _PICTURE) or name.rpartition("/")[2] == "text")


def _files_section(look: Look, files: list[tuple[str, Path]]) -> str:
    there, wrong, sizes = [], [], []
    for key, path in files:
        manifest = Manifest.load(path)
        if manifest is None or not path.is_file():
            wrong.append((key, "failed" if path.is_file() else "missing", "", "", str(path)))
            continue
        sizes.append(manifest.bytes)
        there.append((key, "there", f"{manifest.records:,}", megabytes(manifest.bytes), path.name))
    says = f"{len(sizes)} of {len(files)} files are there"
    if sizes:
        says += (
            f", {megabytes(sum(sizes))}; the smallest has {megabytes(min(sizes))}, the largest {megabytes(max(sizes))}"
        )
    return paragraph(f"{says}.") + _capped(["part", "state", "records", "size", "file"], wrong + there)


def _capped(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Returns a table of the first rows, and how many more there are."""
    more = paragraph(f"… and {len(rows) - _MOST_ROWS:,} more") if len(rows) > _MOST_ROWS else ""
    return table(header, rows[:_MOST_ROWS]) + more


def _readers_section(readers: Metadata) -> str:
    shown = []
    if "recommended" in readers:
        shown.append(paragraph(f"Recommended: {readers['recommended']}, {readers.get('why', '')}".rstrip(", ")))
    shown += [
        text(str(readers[name])) for name in ("readers", "speed", "cycle_length", "batch_size") if name in readers
    ]
    return "\n".join(shown)
