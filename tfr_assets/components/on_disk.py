"""The asset `on_disk`: what lies on the disk for each shard, without reading a record.

It is what the job `NAME_verify` materializes beside the checks: Dagster offers partitions to choose from only for a job
that materializes a partitioned asset, and the shards themselves must not be written by a job that checks them. It does
not depend on `shards`, or their failing checks would hold it back when it has most to tell.
"""

from datetime import UTC, datetime
from typing import Any

import dagster as dg

from tfr_assets.components.failures import chosen_partitions
from tfr_assets.components.look import Look
from tfr_assets.layout import Layout
from tfr_assets.records.manifest import Manifest

_DESCRIPTION = """What lies on the disk for each shard: size and date of the file, and its manifest's word on the size.

Materialized by the verify job, whose checks read every record, which this does not."""


def build_on_disk(look: Look, partitions: dg.StaticPartitionsDefinition) -> dg.AssetsDefinition:
    """Returns the asset `on_disk` of a dataset."""
    dataset = look.dataset

    @dg.asset(
        **look.asset("on_disk", _DESCRIPTION, {"file"}),
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def on_disk(context: dg.AssetExecutionContext) -> None:
        for partition in chosen_partitions(context):
            context.add_asset_metadata(_found(dataset.layout, partition), partition_key=partition)

    return on_disk


def _found(layout: Layout, partition: str) -> dict[str, Any]:
    path = layout.shard_path(partition)
    manifest = Manifest.load(path)
    found: dict[str, Any] = {"dagster/uri": str(path), "exists": path.is_file(), "manifest": manifest is not None}
    if path.is_file():
        status = path.stat()
        found["dagster/size_bytes"] = status.st_size
        found["modified"] = dg.MetadataValue.timestamp(datetime.fromtimestamp(status.st_mtime, UTC))
        found["size_as_in_manifest"] = manifest is not None and manifest.bytes == status.st_size
    return found
