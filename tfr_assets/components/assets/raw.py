"""The asset `raw`: what raw data is there."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from tfr_assets.components.assets.current import report_current
from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import reported
from tfr_assets.components.metadata.file_metadata import inventory_metadata, markdown
from tfr_assets.components.metadata.previews import previews
from tfr_assets.components.metadata.progress import logged
from tfr_assets.components.metadata.report import report_failure
from tfr_assets.components.runs.while_held import while_held
from tfr_assets.errors import ConfigError, SchemaError
from tfr_assets.sources import SKIPPED, Inventory, Source
from tfr_assets.units import megabytes
from tfr_assets.writing.dataset import Dataset

_DESCRIPTION = """The inventory of the raw data: files, rows, schema and a fingerprint of the content.

Parquet and Arrow files are read where they lie, and so are images, recordings and documents, of which a listing is \
kept. CSV, JSON lines and Python functions are landed once as Parquet: no row of these can be found without reading \
all before it."""
_ENDINGS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
_STORES = {"s3": "s3", "gs": "gcs", "gcs": "gcs"}


def build_raw(whole: Look, deps: Sequence[dg.AssetKey] = ()) -> dg.AssetsDefinition:
    """Returns the asset `raw` of a dataset, which comes after the assets `deps`."""

    @dg.asset(
        **whole.asset("raw", _DESCRIPTION, _kinds(whole.dataset.source), code_version=whole.raw_version),
        deps=deps,
        partitions_def=whole.slices,
        backfill_policy=whole.backfills(),  # `dg launch --partition-range` asks for it, of every asset
    )
    def raw(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        from tfr_assets.sources import preview
        from tfr_assets.writing.raw import materialize_raw

        look = whole.in_run(context.run)
        dataset = look.dataset
        with (
            while_held(context, dataset.layout),
            report_failure(look, context, "raw"),
            reported(source=str(dataset.source)),
        ):
            inventory = materialize_raw(dataset, logged(context.log.info))
            metadata = inventory_metadata(inventory, preview(inventory), dataset.layout)
        context.log.info(f"{dataset.title}: {inventory.rows:,} rows, {megabytes(inventory.bytes)}, {_files(inventory)}")
        for warning in inventory.warnings:
            context.log.warning(warning)
        if inventory.skipped:
            context.log.warning(
                f"{inventory.skipped:,} raw files were left out; {dataset.layout.raw / SKIPPED} says why"
            )
        metadata |= previews(inventory, 0, inventory.rows) | _plan(context, dataset, inventory)
        if (
            dataset.layout.shards.is_dir()
            and look.key("shards") not in context.job_def.asset_layer.executable_asset_keys
        ):
            report_current(look, context.instance)
        return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(inventory.fingerprint))

    return raw


def _plan(context: dg.AssetExecutionContext, dataset: Dataset, inventory: Inventory) -> dict[str, Any]:
    """Returns what is shown of the files to come.

    Raw data that cannot become records is still inventoried where it is read as it lies; none of it is landed.
    """
    from tfr_assets.writing.sizing import plan_sizes

    try:
        sizes = plan_sizes(dataset, inventory)
    except (SchemaError, ConfigError) as error:
        context.log.warning(f"no shard can be written: {error}")
        return {"plan": str(error)}
    lines = [(s.split, f"{s.rows:,}", s.shards, megabytes(s.bytes), megabytes(s.bytes / s.shards)) for s in sizes]
    table = markdown(["split", "records", "files", "size", "a file"], lines)
    return {"plan": dg.MetadataValue.md(table), "planned_bytes": sum(size.bytes for size in sizes)}


def _files(inventory: Inventory) -> str:
    count = max(inventory.file_count, 1)
    return f"in {count:,} files" if count > 1 else f"from {inventory.source}"


def _kinds(source: Source) -> set[str]:
    if source.callable:
        return {"python"}
    if source.path is None:
        return {"file"}
    path = str(source.path)
    scheme, separator, _ = path.partition("://")
    kinds = {_STORES[scheme]} if separator and scheme in _STORES else set()
    endings = path.lower().rsplit("/", 1)[-1].split(".")[1:]
    found = [source.format or "", *endings]
    return kinds | ({_ENDINGS[ending] for ending in found if ending in _ENDINGS} or {"file"})
