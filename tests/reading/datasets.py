"""Datasets as the writing room leaves them, small ones."""

from pathlib import Path

import pyarrow as pa

from tfr_assets.layout import Layout, assign_rows
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.merge import merge_files
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FeatureSpec


def spec_of(table: pa.Table, options: FeatureOptions | None = None) -> FeatureSpec:
    return derive_spec(table.schema, {name: table[name].null_count for name in table.column_names}, options)


def write_dataset(
    table: pa.Table,
    root: Path,
    name: str = "sample",
    shards: int = 3,
    compression: str = "none",
    options: FeatureOptions | None = None,
    inventory: str = "one",
) -> Layout:
    """Writes a table as the writing room does: shards, and all of them merged."""
    layout, spec = Layout.of(name, root), spec_of(table, options)
    encoder = ExampleEncoder(spec, options.cast if options else None)
    written: list[tuple[Path, Manifest]] = []
    for shard in assign_rows(table.num_rows, shards):
        rows = table.slice(shard.start, shard.rows).combine_chunks().to_batches()
        frames = (some for batch in rows for some in encoder.encode(batch, shard.start))
        made_from = {"inventory": inventory, "rows": [shard.start, shard.stop]}
        path = layout.shard_path(shard)
        written.append((path, write_file(path, frames, compression, spec, made_from)))
    merge_files(written, layout.merged_path(), spec)
    return layout
