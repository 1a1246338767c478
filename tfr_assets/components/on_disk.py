"""The asset `on_disk`: what lies on the disk for each shard, read back. The job `NAME_verify` materializes it.

Dagster offers partitions to choose from only for an asset, and a backfill of several runs the checks of just the assets
that it materializes; the shards themselves must not be written by a job that checks them. So this asset's own step
evaluates the checks of `shards`. It does not depend on `shards`, or their failing checks would hold it back when it has
most to tell.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from tfr_assets.components.checks import evaluate_shards
from tfr_assets.components.failures import chosen_partitions
from tfr_assets.components.look import Look
from tfr_assets.layout import Layout
from tfr_assets.records.manifest import Manifest

_DESCRIPTION = """What lies on the disk for each shard: every record is read back, and nothing is written.

Materializing it evaluates the checks of `shards` anew, and fails where one that blocks does not pass."""


def build_on_disk(look: Look, partitions: dg.StaticPartitionsDefinition) -> dg.AssetsDefinition:
    """Returns the asset `on_disk` of a dataset."""
    dataset = look.dataset

    @dg.asset(
        **look.asset("on_disk", _DESCRIPTION, {"file"}),
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def on_disk(context: dg.AssetExecutionContext) -> Iterator[Any]:
        partitions = chosen_partitions(context)
        yield from evaluate_shards(look, partitions, context)
        for partition in partitions:
            context.add_asset_metadata(_found(dataset.layout, partition), partition_key=partition)
        yield dg.MaterializeResult()

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
