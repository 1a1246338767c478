"""The asset `published`: what readers need of a dataset, in an object store."""

from typing import TYPE_CHECKING, Any, cast

import dagster as dg

from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import reported
from tfr_assets.components.metadata.progress import counted, logged
from tfr_assets.layout import SLICES
from tfr_assets.units import megabytes

if TYPE_CHECKING:
    from tfr_assets.writing.publish import Published

_KINDS = {"s3": "s3", "gs": "gcs", "az": "azure"}  # as Dagster calls the icons
_DESCRIPTION = """Shards, merged files and what describes them, as they lie on this machine, in an object store.

Each file is verified before it is sent, and exists there by its manifest, which comes last. What is there already is \
not sent again, and what is of an earlier number of shards goes. Each slice has a folder of its own, `slices/KEY`."""


def build_published(whole: Look, url: str) -> dg.AssetsDefinition:
    """Returns the asset `published` of a dataset.

    Args:
        whole: The dataset.
        url: The folder in the store.
    """
    mapping = dg.IdentityPartitionMapping() if whole.slices else dg.AllPartitionMapping()

    @dg.asset(
        **whole.asset("published", _DESCRIPTION, {"tensorflow", _KINDS[url.partition("://")[0]]}),
        deps=[dg.AssetDep(whole.key("shards"), partition_mapping=mapping), whole.key("merged")],
        partitions_def=whole.slices,
        backfill_policy=whole.backfills(),  # as `raw`
        automation_condition=whole.follows,
    )
    def published(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        from tfr_assets.writing.publish import publish

        look = whole.in_run(context.run)
        place = f"{url.rstrip('/')}/{SLICES}/{look.partition}" if look.partition else url
        with reported(dataset=look.dataset.title):
            done = publish(look.dataset.layout.folder, place, counted(logged(context.log.info)), is_locked=True)
        context.log.info(f"{done.sent} files sent ({megabytes(done.bytes)}), {done.kept} were there, to {done.url}")
        return dg.MaterializeResult(metadata=_metadata(done))

    return cast(dg.AssetsDefinition, published)


def _metadata(done: "Published") -> dict[str, Any]:
    return {
        "dagster/uri": done.url,
        "files_sent": done.sent,
        "files_kept": done.kept,
        "files_removed": done.removed,
        "bytes_sent": done.bytes,
        "seconds": round(done.seconds, 3),
    }
