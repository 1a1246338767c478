"""The inventory: what raw data was there, how many rows of which schema, and a fingerprint that identifies it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from tfr_assets.errors import StaleError, TfrError
from tfr_assets.sources.landing.landed import SourceFile, is_count
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.splits import Splits
from tfr_assets.sources.tables.schemas import schema_from_text, schema_to_text
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.sealed import seal, unseal
from tfr_assets.urls import url_of

# fields that JSON can hold as they are
_PLAIN = (
    *("file_count", "rows", "splits", "bytes", "null_counts", "fingerprint"),
    *("classes", "skipped", "first_skipped", "warnings"),
)


@dataclass(frozen=True)
class Inventory:
    """What raw data was there.

    Attributes:
        source: As the user named it.
        files: The raw files as found, in the order of their rows; empty for a callable.
        landed: Parquet files that rows are read from, if they cannot be read from the raw files by range.
        file_count: Number of raw files; `files` lists them only where they hold tables.
        rows: Number of rows.
        splits: Rows of each split; a split's rows follow each other, in the order of the splits.
        bytes: Size of the raw files together; for a callable, of the landed ones.
        schema: Column names and types, without metadata.
        listing: Schema of the landed rows, where these are a listing of files (see `sources.model.kinds`).
        classes: Names of classes by column: an integer there is a position in them.
        skipped: Number of raw files that were left out.
        first_skipped: The first of these, each with the reason.
        warnings: What is no error, but should be known, such as files that were ignored.
        null_counts: Nulls of each column without fields, by path (`a/b` for field b of column a); None where unknown,
            as for lists.
        fingerprint: Hash of the rows' origin (content of all files, or all rows of a callable), of how it is read, and
            of the shuffle's seed. Equal content has equal fingerprints, wherever and whenever it is read.
    """

    source: Source
    files: tuple[SourceFile, ...]
    landed: tuple[SourceFile, ...]
    file_count: int
    rows: int
    splits: Mapping[str, int]
    bytes: int
    schema: pa.Schema
    null_counts: Mapping[str, int | None]
    fingerprint: str
    listing: pa.Schema | None = None
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    skipped: int = 0
    first_skipped: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the inventory as JSON-ready values, without `storage_options`, which may hold credentials."""
        return {
            "source": asdict(self.source) | {"storage_options": {}},
            **{name: getattr(self, name) for name in _PLAIN},
            "schema": schema_to_text(self.schema),
            "listing": self.listing and schema_to_text(self.listing),
            "files": [asdict(file) for file in self.files],
            "landed": [asdict(file) for file in self.landed],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Inventory":
        """Returns the inventory that `to_json` gave.

        Raises:
            ValueError: It gave something else, as do KeyError, TypeError, AttributeError and OSError.
        """
        source = dict(values["source"])
        splits, files = source.pop("splits"), source.pop("files", None)
        inventory = cls(
            source=Source(**source, splits=splits and Splits(**splits), files=None if files is None else tuple(files)),
            files=tuple(SourceFile.from_json(file) for file in values["files"]),
            landed=tuple(SourceFile.from_json(file) for file in values["landed"]),
            schema=schema_from_text(values["schema"]),
            listing=values["listing"] and schema_from_text(values["listing"]),
            **{name: values[name] for name in _PLAIN if name not in ("classes", "first_skipped", "warnings")},
            warnings=tuple(values["warnings"]),
            classes={column: tuple(names) for column, names in values["classes"].items()},
            first_skipped=tuple((file, reason) for file, reason in values["first_skipped"]),
        )
        inventory._check()
        return inventory

    def _check(self) -> None:
        """Raises TypeError where a value is of another type than it must be, ValueError where rows do not add up."""
        counts = (self.file_count, self.rows, self.bytes, self.skipped, *self.splits.values())
        nulls = [count for count in self.null_counts.values() if count is not None]
        texts = (self.fingerprint, *self.splits, *self.null_counts, *self.classes, *self.warnings)
        texts += tuple(chain(*self.classes.values(), *self.first_skipped))
        if not all(map(is_count, (*counts, *nulls))) or not all(isinstance(text, str) for text in texts):
            raise TypeError("a number or a text is invalid")
        if sum(self.splits.values()) != self.rows:
            raise ValueError("splits hold more or fewer rows than there are")

    def _at(self, folder: Path) -> "Inventory":
        """Returns the inventory with landed files where they are on this machine, if they lie in an object store."""
        if url_of(folder) is None or not self.landed:
            return self
        places = (Path(part.path) for part in self.landed)
        paths = [str(folder / place.parent.name / place.name) for place in places]
        return replace(self, landed=tuple(map(_moved, self.landed, paths)))

    def save(self, path: Path) -> None:
        """Writes the inventory; under `path` lies the old one or the new one, never half of it.

        Raises:
            WriteError: The disk refuses.
        """
        write_atomically(path, seal(self.to_json()))

    @classmethod
    def load(cls, path: Path) -> "Inventory":
        """Reads a saved inventory.

        Raises:
            StaleError: There is none, or it is damaged or not one of this version.
        """
        try:
            values = unseal(path.read_bytes())
        except FileNotFoundError as error:
            raise StaleError(f"{path}: there is no inventory of the raw data yet. Materialize raw first.") from error
        except OSError as error:
            raise StaleError(f"{path}: cannot be read: {error.strerror}. Materialize raw again.") from error
        try:
            if values is not None:
                return cls.from_json(values)._at(path.parent)
        except (TfrError, ValueError, KeyError, TypeError, AttributeError, OSError):  # OSError: of Arrow, for a schema
            pass
        raise StaleError(f"{path}: is damaged, or not an inventory of this version. Materialize raw again.")


def _moved(part: SourceFile, path: str) -> SourceFile:
    return replace(part, path=path)
