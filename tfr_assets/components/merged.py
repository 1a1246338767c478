"""The asset `merged`: all records of the shards in one file."""

import dagster as dg

from tfr_assets.components.failures import reported
from tfr_assets.components.look import Look
from tfr_assets.components.metadata import file_metadata
from tfr_assets.components.progress import counted, logged
from tfr_assets.records.units import megabytes

_DESCRIPTION = """One TFRecord file with the records of all shards, in order, made by copying bytes.

The shards are held against their manifests first: a missing, stale or damaged one is refused by name."""


def build_merged(look: Look) -> dg.AssetsDefinition:
    """Returns the asset `merged` of a dataset."""
    dataset = look.dataset

    @dg.asset(
        **look.asset("merged", _DESCRIPTION, {"tensorflow", "file"}, code_version=look.shards_version),
        deps=[dg.AssetDep(look.key("shards"), partition_mapping=dg.AllPartitionMapping())],
    )
    def merged(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        from tfr_assets.writing.merged import merge_shards

        with reported(dataset=dataset.name):
            merged = merge_shards(dataset, counted(logged(context.log.info)))
        size = megabytes(merged.manifest.bytes)
        if merged.written:
            took = f"{merged.copy_seconds:.2f} s, with verification {merged.seconds:.2f} s"
            context.log.info(f"copied {size} in {took}, to {merged.path}")
        else:
            context.log.info(f"skipped: {merged.path} holds the same shards already")
        metadata = file_metadata(merged.manifest, merged.path, merged.seconds if merged.written else None)
        return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(merged.manifest.digest))

    return merged
