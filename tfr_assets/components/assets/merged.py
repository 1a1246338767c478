"""The asset `merged`: all records of the shards in one file."""

from typing import TYPE_CHECKING, Any

import dagster as dg

from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import mark_failed, reported
from tfr_assets.components.metadata.file_metadata import file_metadata, markdown
from tfr_assets.components.metadata.progress import counted, logged
from tfr_assets.components.metadata.report import report_failure
from tfr_assets.components.runs.while_held import while_held
from tfr_assets.errors import TfrError
from tfr_assets.layout import Layout
from tfr_assets.units import megabytes
from tfr_assets.urls import place_of

if TYPE_CHECKING:
    from tfr_assets.writing.merged import Merged

_DESCRIPTION = """One TFRecord file a split with the records of all its shards, in order, made by copying bytes.

The shards are compared with their manifests first: a missing, stale or damaged one is refused by name."""


def build_merged(whole: Look) -> dg.AssetsDefinition:
    """Returns the asset `merged` of a dataset."""
    mapping = dg.IdentityPartitionMapping() if whole.slices else dg.AllPartitionMapping()

    @dg.asset(
        **whole.asset("merged", _DESCRIPTION, {"tensorflow", "file"}, code_version=whole.shards_version),
        deps=[dg.AssetDep(whole.key("shards"), partition_mapping=mapping)],
        partitions_def=whole.slices,
        backfill_policy=whole.backfills(),  # as `raw`
        automation_condition=whole.follows,
        freshness_policy=dg.FreshnessPolicy.time_window(whole.freshness) if whole.freshness else None,
    )
    def merged(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        from tfr_assets.writing.merged import merge_shards

        look = whole.in_run(context.run)
        with (
            while_held(context, look.dataset.layout),
            report_failure(look, context, "merged"),
            reported(dataset=look.dataset.title),
        ):
            try:
                merged = merge_shards(look.current, counted(logged(context.log.info)))
            except TfrError as error:  # "Failed" then selects what must be written again
                wrong = dict.fromkeys(map(look.partition_of, error.shards))
                mark_failed(context.op_execution_context, look.key("shards"), wrong)
                if not wrong:
                    raise
                shards = look.key("shards").to_user_string()
                remedy = f"In the UI: on the page of {shards}, Materialize → Failed → Launch; then materialize merged"
                raise type(error)(f"{error}\n{remedy}") from error.__cause__
        for split, file in merged.items():
            context.log.info(_story(split, file))
        version = "-".join(file.manifest.digest for file in merged.values())
        return dg.MaterializeResult(
            metadata=_metadata(merged, look.dataset.layout), data_version=dg.DataVersion(version)
        )

    return merged


def _story(split: str, file: "Merged") -> str:
    if not file.written:
        return f"{split}: skipped, {place_of(file.path)} holds the same shards already"
    size, rate = megabytes(file.manifest.bytes), file.manifest.bytes / 1e6 / max(file.seconds, 1e-9)
    where = place_of(file.path)
    return f"{split}: copied {size}, and read it back, in {file.seconds:.2f} s ({rate:,.1f} MB/s), to {where}"


def _metadata(merged: "dict[str, Merged]", layout: Layout) -> dict[str, Any]:
    """Returns what is shown: one file's metadata, or the sums of several and a line for each."""
    shown = [file_metadata(f.manifest, f.path, f.seconds if f.written else None) for f in merged.values()]
    report = {"report": dg.MetadataValue.path(place_of(layout.report))}
    if len(shown) == 1:
        return shown[0] | report
    manifests = {split: file.manifest for split, file in merged.items()}
    lines = [(split, f"{m.records:,}", megabytes(m.bytes), m.file, m.digest) for split, m in manifests.items()]
    folder = next(iter(merged.values())).path.parent
    return {
        **{name: shown[0][name] for name in ("compression", "dagster/column_schema") if name in shown[0]},
        "dagster/row_count": sum(manifest.records for manifest in manifests.values()),
        "dagster/size_bytes": sum(manifest.bytes for manifest in manifests.values()),
        "dagster/uri": place_of(folder),
        "path": dg.MetadataValue.path(place_of(folder)),
        "files": len(merged),
        "written": any(file.written for file in merged.values()),
        "splits": dg.MetadataValue.md(markdown(["split", "records", "size", "file", "fingerprint"], lines)),
        **report,
    }
