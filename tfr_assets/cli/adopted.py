"""Shows what `tfr adopt` found."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfr_assets.cli.terminal import out, table
from tfr_assets.records.frames.manifest import Manifest


def as_document(adopted: Mapping[Path, Manifest]) -> list[dict[str, Any]]:
    """Returns the files as JSON-ready values."""
    return [
        {
            "path": str(path),
            "records": manifest.records,
            "bytes": manifest.bytes,
            "compression": manifest.compression,
            "features": manifest.features.to_json() if manifest.features else [],
        }
        for path, manifest in adopted.items()
    ]


def show(adopted: Mapping[Path, Manifest]) -> None:
    """Prints the files, and the features of each set."""
    files = [(str(path), f"{manifest.records:,}", f"{manifest.bytes:,}") for path, manifest in adopted.items()]
    out.print(table("", ("adopted", "records", "bytes"), files, ("records", "bytes")))
    for spec in dict.fromkeys(manifest.features for manifest in adopted.values() if manifest.features):
        lines = [
            (each.name, each.arrow_type, str(each.shape), "some records" if each.optional else "")
            for each in spec.features
        ]
        out.print(table("", ("feature", "type", "shape", "absent in"), lines, (), apart=True))
