"""The inventory: what raw data was there, how many rows of which schema, and a fingerprint that tells it from other."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tfr_assets.errors import StaleError
from tfr_assets.records.files import write_atomically
from tfr_assets.sources.landing import SourceFile
from tfr_assets.sources.schema import schema_from_text, schema_to_text
from tfr_assets.sources.source import Source


@dataclass(frozen=True)
class Inventory:
    """What raw data was there.

    Attributes:
        source: As the user named it.
        files: The raw files as found, in the order of their rows; empty for a callable.
        landed: Parquet files that rows are read from, if they cannot be read from the raw files by range.
        rows: Number of rows.
        bytes: Size of the raw files together; for a callable, of the landed ones.
        schema: Column names and types, without metadata.
        null_counts: Nulls of each column without fields, by path (`a/b` for field b of column a); None where unknown,
            as for lists.
        fingerprint: Hash of the rows' origin (content of all files, or all rows of a callable), of how it is read, and
            of the shuffle's seed. Equal content has equal fingerprints, wherever and whenever it is read.
    """

    source: Source
    files: tuple[SourceFile, ...]
    landed: tuple[SourceFile, ...]
    rows: int
    bytes: int
    schema: pa.Schema
    null_counts: Mapping[str, int | None]
    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        """Returns the inventory as JSON-ready values, without `storage_options`, which may hold credentials."""
        values = {name: getattr(self, name) for name in ("rows", "bytes", "fingerprint")}
        return {
            "source": asdict(self.source) | {"storage_options": {}},
            **values,
            "null_counts": dict(self.null_counts),
            "schema": schema_to_text(self.schema),
            "files": [asdict(file) for file in self.files],
            "landed": [asdict(file) for file in self.landed],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Inventory":
        """Returns the inventory that `to_json` gave."""
        return cls(
            source=Source(**values["source"]),
            files=tuple(SourceFile.from_json(file) for file in values["files"]),
            landed=tuple(SourceFile.from_json(file) for file in values["landed"]),
            schema=schema_from_text(values["schema"]),
            **{name: values[name] for name in ("rows", "bytes", "null_counts", "fingerprint")},
        )

    def save(self, path: Path) -> None:
        """Writes the inventory; under `path` lies the old one or the new one, never half of it.

        Raises:
            WriteError: The disk refuses.
        """
        write_atomically(path, json.dumps(self.to_json(), indent=1).encode())

    @classmethod
    def load(cls, path: Path) -> "Inventory":
        """Reads a saved inventory.

        Raises:
            StaleError: There is none, or it is not one of this version.
        """
        try:
            return cls.from_json(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise StaleError(f"{path}: there is no inventory of the raw data yet. Materialize raw first.") from error
        except (ValueError, KeyError, TypeError) as error:
            raise StaleError(f"{path}: is not an inventory of this version. Materialize raw again.") from error
