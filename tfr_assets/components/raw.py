"""The asset `raw`: what raw data is there."""

import dagster as dg

from tfr_assets.components.failures import reported
from tfr_assets.components.look import Look
from tfr_assets.components.metadata import inventory_metadata
from tfr_assets.components.progress import logged
from tfr_assets.sources import Source

_DESCRIPTION = """The inventory of the raw data: files, rows, schema and a fingerprint of the content.

Parquet and Arrow files are read where they lie. CSV, JSON lines and Python functions are landed once as Parquet: no \
row of these can be found without reading all before it."""
_ENDINGS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
_STORES = {"s3": "s3", "gs": "gcs", "gcs": "gcs"}


def build_raw(look: Look) -> dg.AssetsDefinition:
    """Returns the asset `raw` of a dataset."""
    dataset = look.dataset

    @dg.asset(**look.asset("raw", _DESCRIPTION, _kinds(dataset.source), code_version=look.raw_version))
    def raw(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        from tfr_assets.sources import preview
        from tfr_assets.writing.raw import materialize_raw

        with reported(source=str(dataset.source)):
            inventory = materialize_raw(dataset, logged(context.log.info))
            metadata = inventory_metadata(inventory, preview(inventory))
        context.log.info(f"{dataset.name}: {inventory.rows:,} rows, fingerprint {inventory.fingerprint}")
        return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(inventory.fingerprint))

    return raw


def _kinds(source: Source) -> set[str]:
    if source.callable:
        return {"python"}
    path = str(source.path)
    scheme, separator, _ = path.partition("://")
    kinds = {_STORES[scheme]} if separator and scheme in _STORES else set()
    endings = path.lower().rsplit("/", 1)[-1].split(".")[1:]
    found = [source.format or "", *endings]
    return kinds | ({_ENDINGS[ending] for ending in found if ending in _ENDINGS} or {"file"})
