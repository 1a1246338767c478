"""The checks of `shards`, by partition, and of `merged`. Each reads its files back from the disk once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from tfr_assets.components.assets.current import current_spec, evaluate_current
from tfr_assets.components.assets.evaluation import evaluations
from tfr_assets.components.assets.jobs import verify_job
from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import caught_up, chosen_partitions, mark_failed
from tfr_assets.components.metadata.progress import logged
from tfr_assets.components.metadata.report import report_failure, write_report
from tfr_assets.errors import TfrError
from tfr_assets.layout import shard_keys
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.verdicts import CHECKS, Verdict, judge, judge_size, together
from tfr_assets.storage.mirror import state_of
from tfr_assets.urls import place_of
from tfr_assets.writing.dataset import Dataset

_STATE = "file_state"

if TYPE_CHECKING:
    from tfr_assets.records.frames.examine import FileReport


def build_shard_checks(whole: Look) -> dg.AssetChecksDefinition:
    """Returns the checks of the asset `shards`, evaluated for every partition of a run."""
    again = f" The job {verify_job(whole.dataset.name)} checks stored shards again."
    specs = [*_specs(whole.key("shards"), whole.partitions, again), current_spec(whole)]

    @dg.multi_asset_check(name=f"{whole.dataset.name}_check_shards", specs=specs, description="Reads every shard back.")
    def check_shards(context: dg.AssetCheckExecutionContext) -> Iterator[Any]:
        chosen = chosen_partitions(context)
        look = caught_up(whole.in_run(context.run))
        done = _evaluated(look, context)
        yield evaluate_current(look, context.instance)
        with report_failure(look, context, "shards"):
            yield from evaluate_shards(look, [partition for partition in chosen if partition not in done], context)
        if look.key("merged") not in context.job_def.asset_layer.executable_asset_keys:  # whose check does it otherwise
            write_report(look, context)
        yield from (dg.Output(None, spec.get_python_identifier()) for spec in specs)

    return check_shards


def _evaluated(look: Look, context: dg.AssetCheckExecutionContext) -> set[str]:
    """Returns the partitions that passed all checks in this run, and whose files were not touched since."""
    passed: dict[str, set[str]] = {}
    cursor, more = None, True
    while more:
        of_run = context.instance.get_records_for_run(
            context.run.run_id, cursor=cursor, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
        )
        cursor, more = of_run.cursor, of_run.has_more
        for event in filter(None, (record.event_log_entry.dagster_event for record in of_run.records)):
            found = event.asset_check_evaluation_data
            state = found.metadata.get(_STATE)
            if not found.passed or found.asset_key != look.key("shards") or not found.partition or not state:
                continue
            if state.value == state_of(look.dataset.layout.shard_path(found.partition)):
                passed.setdefault(found.partition, set()).add(found.check_name)
    return {partition for partition, names in passed.items() if len(names) == len(CHECKS)}


def evaluate_shards(
    look: Look,
    partitions: Sequence[str],
    context: dg.AssetCheckExecutionContext | dg.OpExecutionContext,
    assigned: "Assigned | None" = None,
) -> Iterator[dg.AssetCheckEvaluation]:
    """Reads shards back from the disk, each once, and yields the evaluations of all their checks.

    Those of damaged shards come last, because the latest one is what the UI shows for a check as a whole, and their
    partitions are marked as failed.

    Args:
        look: The dataset.
        partitions: Which partitions of its shards.
        context: Of the step that does it.
        assigned: What the raw data assigns to them, where that is known already.

    Raises:
        dg.Failure: Shards are damaged; the message names them.
    """
    key, dataset = look.key("shards"), look.current
    assigned = assigned or _assigned(dataset)
    report_progress = logged(context.log.info)
    wrong: dict[str, list[Verdict]] = {}
    for done, partition in enumerate(partitions):
        files = {file: _judge_shard(dataset, file, assigned) for file in look.files(partition)}
        verdicts = [together(dict(zip(files, each, strict=True))) for each in zip(*files.values(), strict=True)]
        if all(verdict.passed for verdict in verdicts):
            yield from _evaluations(context, verdicts, key, partition)
        else:
            wrong[partition] = verdicts
        report_progress(done + 1, len(partitions))
    for partition, verdicts in wrong.items():
        yield from _evaluations(context, verdicts, key, partition)
    if damaged := [partition for partition, verdicts in wrong.items() if any(map(_blocks, verdicts))]:
        mark_failed(context, key, damaged)
        raise dg.Failure(_repair(look, damaged, len(partitions)), allow_retries=False)


def _judge_shard(dataset: Dataset, shard: str, assigned: "Assigned") -> list[Verdict]:
    path = dataset.layout.shard_path(shard)
    state = state_of(path)
    report, manifest = _read(path)
    split = shard.partition("-")[0]
    verdicts = [
        *judge(report, manifest, assigned.to({shard}), assigned.skipped),
        judge_size(report.bytes, report.bytes * assigned.weight(split, shard), dataset.shard_counts[split]),
    ]
    return [replace(verdict, shown={**verdict.shown, _STATE: state}) for verdict in verdicts]


def _blocks(verdict: Verdict) -> bool:
    return verdict.check.blocking and not verdict.passed


def _repair(look: Look, damaged: Sequence[str], total: int) -> str:
    named = ", ".join(damaged[:20]) + (", …" if len(damaged) > 20 else "")
    asset = look.key("shards").to_user_string()
    return (
        f"{len(damaged)} of {total} partitions of {asset} are damaged, missing or not made from the current raw data: "
        f"{named}. Materialize these: on the page of {asset}, Materialize → Failed → Launch"
    )


def build_merged_checks(whole: Look) -> dg.AssetChecksDefinition:
    """Returns the checks of the asset `merged`."""
    key = whole.key("merged")
    specs = _specs(key, whole.slices)

    @dg.multi_asset_check(
        name=f"{whole.dataset.name}_check_merged", specs=specs, description="Reads the merged file back."
    )
    def check_merged(context: dg.AssetCheckExecutionContext) -> Iterator[Any]:
        look = caught_up(whole.in_run(context.run))
        yield from _evaluations(context, list(judge_merged(look.current)), key, look.partition)
        write_report(look, context)
        context.log.info(f"{look.dataset.title} on one page: {place_of(look.dataset.layout.report)}")
        yield from (dg.Output(None, spec.get_python_identifier()) for spec in specs)

    return check_merged


def evaluate_merged(
    look: Look, context: dg.AssetCheckExecutionContext | dg.OpExecutionContext
) -> Iterator[dg.AssetCheckEvaluation]:
    """Reads the merged file of every split back, and yields the evaluations of all its checks.

    Raises:
        dg.Failure: A file is damaged or missing; `merged` is marked as failed.
    """
    key = look.key("merged")
    verdicts = list(judge_merged(look.current))
    yield from _evaluations(context, verdicts, key, look.partition)
    if wrong := [verdict for verdict in verdicts if _blocks(verdict)]:
        mark_failed(context, key, [look.partition])
        asset = key.to_user_string()
        raise dg.Failure(
            f"{asset} is damaged or missing: {wrong[0].says}. Materialize it: on the page of {asset}, Materialize",
            allow_retries=False,
        )


def judge_merged(dataset: Dataset) -> Iterator[Verdict]:
    """Reads the merged file of every split back, and yields what each check found in all of them."""
    assigned = _assigned(dataset)
    by_split = {split: list(_judge_split(dataset, split, assigned)) for split in dataset.splits}
    for verdicts in zip(*by_split.values(), strict=True):
        yield together(dict(zip(by_split, verdicts, strict=True)))


def _judge_split(dataset: Dataset, split: str, assigned: "Assigned") -> Iterator[Verdict]:
    report, manifest = _read(dataset.layout.merged_path(split))
    shards = shard_keys(split, dataset.shard_counts[split])
    yield from judge(report, manifest, assigned.to(shards), assigned.skipped)
    yield judge_size(report.bytes, report.bytes, 1)


def _specs(key: dg.AssetKey, partitions: dg.PartitionsDefinition | None, more: str = "") -> list[dg.AssetCheckSpec]:
    return [
        dg.AssetCheckSpec(
            check.name,
            asset=key,
            description=check.description + more,
            blocking=check.blocking,
            partitions_def=partitions,
        )
        for check in CHECKS
    ]


def _read(path: Path) -> "tuple[FileReport, Manifest | None]":
    from tfr_assets.records.frames.examine import examine_written

    return examine_written(path)


@dataclass(frozen=True)
class Assigned:
    """What the raw data assigns to shards.

    Attributes:
        rows: Rows of each shard.
        splits: Rows of each split.
        skipped: Number of raw files that were left out.
        problem: Why none of this is known, if so.
    """

    rows: Mapping[str, int]
    splits: Mapping[str, int]
    skipped: int = 0
    problem: str = ""

    def to(self, shards: Iterable[str]) -> int | str:
        """Returns the rows of some shards together, or why they are not known."""
        return self.problem or sum(self.rows[shard] for shard in shards)

    def weight(self, split: str, shard: str) -> float:
        """Returns how many times the rows of a shard its split has."""
        rows = self.rows.get(shard, 0)
        return self.splits[split] / rows if rows else 1.0


def _assigned(dataset: Dataset) -> Assigned:
    from tfr_assets.writing.plan import load_inventory, plan_shards

    try:
        inventory = load_inventory(dataset)
        rows = {shard.key: shard.rows for shard in plan_shards(dataset).shards}
    except TfrError as error:
        return Assigned({}, {}, problem=str(error))
    return Assigned(rows, inventory.splits, inventory.skipped)


def _evaluations(
    context: dg.AssetCheckExecutionContext | dg.OpExecutionContext,
    verdicts: list[Verdict],
    key: dg.AssetKey,
    partition: str | None,
) -> Iterator[dg.AssetCheckEvaluation]:
    for verdict in verdicts:
        if not verdict.passed:
            context.log.warning(f"{verdict.check.name} of {partition or key.to_user_string()}: {verdict.says}")
    yield from evaluations(verdicts, key, partition, context.instance)
