"""The page `report.html` beside a dataset's data: what the UI shows on several pages, partly after a click.

It is written after each refresh, verification and report of readers, by the step that has the last of the facts: those
of assets and checks come from Dagster, those of files from their manifests.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus as Status

from tfr_assets.components.attributes import Look
from tfr_assets.components.metadata.html import facts, page, paragraph, subsection, table, text
from tfr_assets.errors import TfrError
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.verdicts import CHECKS, CURRENT, Check
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.units import megabytes

_MOST_ROWS = 200  # of a table of shards or failed checks
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


def write_report(look: Look, context: _Context, known: Mapping[str, Metadata] | None = None) -> None:
    """Writes a dataset's page. If the disk refuses, the log says so: the data is what counts.

    Args:
        look: The dataset.
        context: Of the step that does it.
        known: Metadata of assets that Dagster does not know yet, by the last part of their keys.
    """
    try:
        write_atomically(look.dataset.layout.report, build_report(look, context.instance, known or {}).encode())
    except (TfrError, OSError) as error:
        context.log.warning(f"{look.dataset.layout.report} is not up to date: {error}")


def build_report(look: Look, instance: dg.DagsterInstance, known: Mapping[str, Metadata]) -> str:
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
    return page(look.dataset.name, about, sections)


def _records(merged: Metadata) -> str:
    if "dagster/row_count" not in merged:
        return ""
    return f"{merged['dagster/row_count']:,} records, {megabytes(merged['dagster/size_bytes'])}. "


def _metadata(look: Look, part: str, instance: dg.DagsterInstance) -> Metadata:
    event = instance.get_latest_materialization_event(look.key(part))
    found = event.asset_materialization if event else None
    return {name: value.value for name, value in found.metadata.items()} if found else {}


def _checks(look: Look, instance: dg.DagsterInstance) -> Iterator[_Checked]:
    for part, check in [*(("shards", each) for each in (*CHECKS, CURRENT)), *(("merged", each) for each in CHECKS)]:
        key = dg.AssetCheckKey(look.key(part), check.name)
        infos = instance.event_log_storage.get_asset_check_partition_info([key])
        status = {info.partition_key: info.latest_execution_status for info in infos}
        keys: list[str | None] = [*look.partition_keys] if part == "shards" and check is not CURRENT else [None]
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
    more = paragraph(f"… and {len(wrong) - _MOST_ROWS:,} more") if len(wrong) > _MOST_ROWS else ""
    return shown + subsection("What failed", table(["asset", "check", "partition", "why"], wrong[:_MOST_ROWS]) + more)


def _raw_section(raw: Metadata) -> str:
    if not raw:
        return paragraph("Raw data was not looked at yet.")
    shown = [facts((words, raw[name]) for name, words in _FACTS.items() if name in raw)]
    if "warnings" in raw:
        shown.append(subsection("Warnings", text(raw["warnings"])))
    if "first_skipped" in raw:
        shown.append(subsection("The first files that were left out", text(raw["first_skipped"])))
    for name in ("preview", *(name for name, value in raw.items() if _is_drawn(name, value))):
        shown.append(subsection(name, text(str(raw[name]))))
    return "\n".join(shown)


def _is_drawn(name: str, value: Any) -> bool:
    """Whether it is a picture of records, or a text of them."""
    return isinstance(value, str) and (all(part in value for part in _PICTURE) or name.rpartition("/")[2] == "text")


def _files_section(look: Look, files: list[tuple[str, Path]]) -> str:
    rows, sizes = [], []
    for key, path in files:
        manifest = Manifest.load(path)
        if manifest is None or not path.is_file():
            rows.append((key, "failed", "", "", str(path)))
            continue
        sizes.append(manifest.bytes)
        if len(rows) < _MOST_ROWS:
            rows.append((key, "there", f"{manifest.records:,}", megabytes(manifest.bytes), path.name))
    says = f"{len(sizes)} of {len(files)} files are there"
    if sizes:
        says += (
            f", {megabytes(sum(sizes))}; the smallest has {megabytes(min(sizes))}, the largest {megabytes(max(sizes))}"
        )
    return paragraph(f"{says}.") + table(["part", "state", "records", "size", "file"], rows)


def _readers_section(readers: Metadata) -> str:
    shown = []
    if "recommended" in readers:
        shown.append(paragraph(f"Recommended: {readers['recommended']}, {readers['why']}"))
    shown += [text(readers[name]) for name in ("readers", "speed", "cycle_length", "batch_size") if name in readers]
    return "\n".join(shown)
