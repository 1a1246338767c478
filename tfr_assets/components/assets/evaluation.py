"""A check's evaluation of one partition: the one place that needs a class which Dagster does not export.

`AssetCheckResult` is stored without a partition when a run covers several, and the UI shows a status by partition only
for an evaluation that points to the materialization it is about.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as Target,
)

from tfr_assets.components.metadata.file_metadata import markdown, rounded
from tfr_assets.records.frames.verdicts import Verdict

_FAULTS_SHOWN = 20


def evaluations(
    verdicts: Iterable[Verdict], key: dg.AssetKey, partition: str | None, instance: dg.DagsterInstance
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yields verdicts as Dagster stores them.

    Args:
        verdicts: What was found.
        key: The asset that was checked.
        partition: The partition, if it has any.
        instance: Where its latest materialization is looked up.
    """
    latest = _latest(key, partition, instance)
    for verdict in verdicts:
        yield _evaluation(verdict, key, partition, latest)


def _evaluation(
    verdict: Verdict, key: dg.AssetKey, partition: str | None, latest: Target | None
) -> dg.AssetCheckEvaluation:
    metadata = rounded(verdict.shown)
    if verdict.faults:
        rows = [
            (Path(fault.path).name, fault.record, fault.offset, fault.kind.value, fault.detail)
            for fault in verdict.faults
        ]
        table = markdown(["file", "record", "byte", "kind", "detail"], rows[:_FAULTS_SHOWN])
        metadata["faults"] = verdict.fault_count
        metadata["first_faults"] = dg.MetadataValue.md(table)
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=verdict.check.name,
        partition=partition,
        passed=verdict.passed,
        description=verdict.says,
        metadata=metadata,
        severity=dg.AssetCheckSeverity.ERROR if verdict.check.blocking else dg.AssetCheckSeverity.WARN,
        blocking=verdict.check.blocking,
        target_materialization_data=latest,
    )


def _latest(key: dg.AssetKey, partition: str | None, instance: dg.DagsterInstance) -> Target | None:
    wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=None if partition is None else [partition])
    records = instance.fetch_materializations(wanted, limit=1).records
    if not records:
        return None
    (latest,) = records
    return Target(storage_id=latest.storage_id, run_id=latest.run_id, timestamp=latest.timestamp)
