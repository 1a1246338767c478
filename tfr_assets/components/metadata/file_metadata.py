"""What the UI shows of inventories and files: numbers that plot over time, schemas, previews."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from tfr_assets.layout import Layout
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.sources import SKIPPED, Inventory
from tfr_assets.sources.model.kinds import TABLE
from tfr_assets.urls import place_of

_PREVIEW_COLUMNS = 30
_CELL_LENGTH = 40


def inventory_metadata(inventory: Inventory, preview: pa.Table, layout: Layout) -> dict[str, Any]:
    """Returns what is shown of raw data.

    Args:
        inventory: What is there.
        preview: Its first rows.
        layout: Where the dataset's files lie.
    """
    shown: dict[str, Any] = {
        "dagster/row_count": inventory.rows,
        "dagster/size_bytes": inventory.bytes,
        "dagster/uri": str(inventory.source),
        "dagster/column_schema": _column_schema(inventory),
        "files": max(inventory.file_count, 1),
        "landed": len(inventory.landed),
        "bytes_per_row": _ratio(inventory.bytes, inventory.rows),
        "fingerprint": inventory.fingerprint,
        "report": dg.MetadataValue.path(place_of(layout.report)),
        "preview": dg.MetadataValue.md(markdown_table(preview)),
    }
    if inventory.source.kind != TABLE:
        shown["skipped"] = inventory.skipped
    if inventory.warnings:
        shown["warnings"] = dg.MetadataValue.md("\n".join(f"- {warning}" for warning in inventory.warnings))
    if (layout.raw / SKIPPED).exists():
        shown["skipped_list"] = dg.MetadataValue.path(place_of(layout.raw / SKIPPED))
    if inventory.skipped:
        shown["first_skipped"] = dg.MetadataValue.md(markdown(["file", "reason"], inventory.first_skipped))
    return shown


def file_metadata(manifest: Manifest, path: Path, seconds: float | None) -> dict[str, Any]:
    """Returns what is shown of a TFRecord file.

    Args:
        manifest: What it holds.
        path: Where it lies.
        seconds: How long writing it took; None if it was there already, so that plots of speed show writes only.
    """
    shown = {
        "dagster/row_count": manifest.records,
        "dagster/size_bytes": manifest.bytes,
        "dagster/uri": place_of(path),
        "path": dg.MetadataValue.path(place_of(path)),
        "compression": manifest.compression,
        "bytes_per_record": _ratio(manifest.bytes, manifest.records),
        "fingerprint": manifest.digest,
        "written": seconds is not None,
    }
    if manifest.features is not None:
        shown["dagster/column_schema"] = _feature_schema(manifest.features)
    if seconds is None:
        return {**shown, "skipped": "The file is there already and matches its manifest."}
    return {**shown, "seconds": round(seconds, 3), "records_per_second": _ratio(manifest.records, seconds)}


def rounded(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata with as many digits of each float as somebody reads."""
    return {name: _round(value) if isinstance(value, float) else value for name, value in shown.items()}


def _round(value: float) -> float:
    return float(f"{value:.4g}") if abs(value) < 1000 else round(value, 1)


def markdown_table(table: pa.Table) -> str:
    """Returns a table for people to look at, its cells cut short."""
    shown = table.select(table.column_names[:_PREVIEW_COLUMNS])
    text = markdown(shown.column_names, ([_cut(cell) for cell in row.values()] for row in shown.to_pylist()))
    left_out = table.num_columns - shown.num_columns
    return f"{text}\n\n… and {left_out} more columns" if left_out else text


def markdown(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Returns a markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _column_schema(inventory: Inventory) -> dg.TableSchema:
    columns = []
    for field in inventory.schema:
        nulls = inventory.null_counts.get(field.name)
        columns.append(
            dg.TableColumn(
                field.name,
                str(field.type),
                description=f"{nulls:,} nulls" if nulls else None,
                constraints=dg.TableColumnConstraints(nullable=nulls != 0),
            )
        )
    return dg.TableSchema(columns)


def _feature_schema(features: FeatureSpec) -> dg.TableSchema:
    return dg.TableSchema(
        [
            dg.TableColumn(
                feature.name,
                feature.kind.value + (str(list(feature.shape)).replace("None", "?") if feature.shape else ""),
                description=f"from column {feature.column} ({feature.arrow_type})",
                constraints=dg.TableColumnConstraints(nullable=feature.optional),
            )
            for feature in features.features
        ]
    )


def _cell(value: object) -> str:
    return str(value).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("\r", " ")


def _cut(value: object) -> str:
    text = "" if value is None else _binary(value) if isinstance(value, bytes) else str(value)
    return text if len(text) <= _CELL_LENGTH else text[: _CELL_LENGTH - 1] + "…"


def _binary(value: bytes) -> str:
    return f"{len(value):,} bytes" if len(value) > _CELL_LENGTH else str(value)


def _ratio(above: float, below: float) -> float:
    ratio = above / below if below else 0.0
    return round(ratio, 3 - math.floor(math.log10(ratio)) - 1) if 0 < ratio < 100 else round(ratio)
