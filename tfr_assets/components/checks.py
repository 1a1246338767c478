"""The checks of `shards`, by partition, and of `merged`. Each reads its files back from the disk once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from tfr_assets.components.evaluation import evaluation
from tfr_assets.components.failures import chosen_partitions
from tfr_assets.components.look import Look
from tfr_assets.components.progress import logged
from tfr_assets.components.verdicts import CHECKS, Verdict, judge, judge_size, together
from tfr_assets.errors import TfrError
from tfr_assets.layout import shard_keys
from tfr_assets.records.manifest import Manifest
from tfr_assets.writing.dataset import Dataset

if TYPE_CHECKING:
    from tfr_assets.records.report import FileReport


def build_shard_checks(look: Look, partitions: dg.StaticPartitionsDefinition) -> dg.AssetChecksDefinition:
    """Returns the checks of the asset `shards`, evaluated for every partition of a run."""
    specs = _specs(look.key("shards"), partitions)

    @dg.multi_asset_check(name=f"{look.dataset.name}_check_shards", specs=specs, description="Reads every shard back.")
    def check_shards(context: dg.AssetCheckExecutionContext) -> Iterator[Any]:
        yield from evaluate_shards(look, chosen_partitions(context), context)
        yield from (dg.Output(None, spec.get_python_identifier()) for spec in specs)

    return check_shards


def evaluate_shards(
    look: Look, partitions: Sequence[str], context: dg.AssetCheckExecutionContext | dg.AssetExecutionContext
) -> Iterator[dg.AssetCheckEvaluation]:
    """Reads shards back from the disk, each once, and yields the evaluations of all their checks.

    Args:
        look: The dataset.
        partitions: Which of its shards.
        context: Of the step that does it.
    """
    dataset, key = look.dataset, look.key("shards")
    assigned = _assigned(dataset)
    report_progress = logged(context.log.info)
    sizes = {}
    for done, partition in enumerate(partitions):
        report, manifest = _read(dataset.layout.shard_path(partition))
        sizes[partition] = report.bytes
        for verdict in judge(report, manifest, assigned.to({partition}), assigned.skipped):
            yield _told(context, verdict, key, partition)
        report_progress(done + 1, len(partitions))
    for split, count in dataset.shard_counts.items():
        of_split = {partition: size for partition, size in sizes.items() if partition.partition("-")[0] == split}
        total = sum(of_split.values()) / max(len(of_split), 1) * count
        for partition, size in of_split.items():
            yield _told(context, judge_size(size, total, count), key, partition)


def build_merged_checks(look: Look) -> dg.AssetChecksDefinition:
    """Returns the checks of the asset `merged`."""
    dataset, key = look.dataset, look.key("merged")
    specs = _specs(key, None)

    @dg.multi_asset_check(name=f"{dataset.name}_check_merged", specs=specs, description="Reads the merged file back.")
    def check_merged(context: dg.AssetCheckExecutionContext) -> Iterator[Any]:
        for verdict in judge_merged(dataset):
            yield _told(context, verdict, key, None)
        yield from (dg.Output(None, spec.get_python_identifier()) for spec in specs)

    return check_merged


def judge_merged(dataset: Dataset) -> Iterator[Verdict]:
    """Reads the merged file of every split back, and yields what each check found in all of them."""
    assigned = _assigned(dataset)
    by_split = {split: list(_judge_split(dataset, split, assigned)) for split in dataset.splits}
    for verdicts in zip(*by_split.values(), strict=True):
        yield together(dict(zip(by_split, verdicts, strict=True)))


def _judge_split(dataset: Dataset, split: str, assigned: "_Assigned") -> Iterator[Verdict]:
    report, manifest = _read(dataset.layout.merged_path(split))
    shards = shard_keys(split, dataset.shard_counts[split])
    yield from judge(report, manifest, assigned.to(shards), assigned.skipped)
    yield judge_size(report.bytes, report.bytes, 1)


def _specs(key: dg.AssetKey, partitions: dg.PartitionsDefinition | None) -> list[dg.AssetCheckSpec]:
    return [
        dg.AssetCheckSpec(
            check.name, asset=key, description=check.description, blocking=check.blocking, partitions_def=partitions
        )
        for check in CHECKS
    ]


def _read(path: Path) -> "tuple[FileReport, Manifest | None]":
    from tfr_assets.records.report import examine_written

    return examine_written(path)


@dataclass(frozen=True)
class _Assigned:
    """How many rows the raw data assigns to each shard, or why that is not known; raw files that were left out."""

    rows: Mapping[str, int]
    problem: str = ""
    skipped: int = 0

    def to(self, shards: Iterable[str]) -> int | str:
        return self.problem or sum(self.rows[shard] for shard in shards)


def _assigned(dataset: Dataset) -> _Assigned:
    from tfr_assets.writing.plan import load_inventory, plan_shards

    try:
        rows = {shard.key: shard.rows for shard in plan_shards(dataset).shards}
        return _Assigned(rows, skipped=load_inventory(dataset).skipped)
    except TfrError as error:
        return _Assigned({}, str(error))


def _told(
    context: dg.AssetCheckExecutionContext | dg.AssetExecutionContext,
    verdict: Verdict,
    key: dg.AssetKey,
    partition: str | None,
) -> dg.AssetCheckEvaluation:
    if not verdict.passed:
        context.log.warning(f"{verdict.check.name} of {partition or key.to_user_string()}: {verdict.says}")
    return evaluation(verdict, key, partition, context.instance)
