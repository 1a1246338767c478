"""What happens to the rows of a mixed listing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfr_assets.errors import ConfigError
from tfr_assets.sources.mixed.parts import MixedSource
from tfr_assets.sources.model.kinds import KEY, TABLE, Expansion, kind_named


@dataclass
class _Columns:
    """Columns of a table, which are the records' columns already."""

    schema: pa.Schema

    def sizes(self, rows: pa.RecordBatch) -> np.ndarray:
        return np.full(rows.num_rows, rows.nbytes // max(rows.num_rows, 1), np.int64)

    def null_counts(self, listed: Mapping[str, int | None]) -> dict[str, int | None]:
        return {name: count for name, count in listed.items() if not name.startswith(".")}

    def expand(self, rows: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        return rows.select([name for name in self.schema.names if name in columns])


@dataclass(frozen=True)
class ExpandedPart:
    """A part of a mixed listing, and what happens to it.

    Attributes:
        prefix: Begins the names of its columns in records.
        names: Of its columns in the mixed listing.
        schema: Of these in a listing of its own.
        made: What happens to that.
    """

    prefix: str
    names: tuple[str, ...]
    schema: pa.Schema
    made: Expansion

    def rows_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the part's own listing of mixed rows."""
        return pa.RecordBatch.from_arrays([rows.column(name) for name in self.names], schema=self.schema)

    def null_counts(self, listed: Mapping[str, int | None]) -> dict[str, int | None]:
        """Returns the nulls of what it makes of mixed rows, under the names in records."""
        own = {
            own + path.removeprefix(name): count
            for name, own in zip(self.names, self.schema.names, strict=True)
            for path, count in listed.items()
            if path == name or path.startswith(f"{name}/")
        }
        return {self.prefix + path: count for path, count in self.made.null_counts(own).items()}


@dataclass(frozen=True)
class Mixed:
    """The `kinds.Expansion` of several parts.

    Attributes:
        key: The feature of the key.
        parts: What happens to each part.
        schema: All columns that records can have.
    """

    key: str
    parts: tuple[ExpandedPart, ...]
    schema: pa.Schema

    def sizes(self, rows: pa.RecordBatch) -> np.ndarray:
        """Returns the sum of the parts' sizes: int64 (rows,)."""
        return np.sum([part.made.sizes(part.rows_of(rows)) for part in self.parts], axis=0)

    def null_counts(self, listed: Mapping[str, int | None]) -> dict[str, int | None]:
        """Returns the nulls of the columns of `schema`. See `kinds.Expansion`."""
        counts = [part.null_counts(listed) for part in self.parts]
        return {self.key: 0, **{path: count for part in counts for path, count in part.items()}}

    def expand(self, rows: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        """Returns the named columns of `schema`, in its order. See `kinds.Expansion`."""
        made = {self.key: rows.column(KEY)}
        for part in self.parts:
            if wanted := [name for name in part.made.schema.names if part.prefix + name in columns]:
                batch = part.made.expand(part.rows_of(rows), wanted)
                made |= {part.prefix + name: batch.column(name) for name in wanted}
        schema = pa.schema([column for column in self.schema if column.name in columns])
        return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)


def expanded(
    options: MixedSource, schemas: Sequence[pa.Schema], classes: Mapping[str, tuple[str, ...]]
) -> tuple[ExpandedPart, ...]:
    """Returns what happens to each part.

    Args:
        options: Of the mixed source.
        schemas: Of each part's columns in the mixed listing.
        classes: As listing found them.

    Raises:
        ConfigError: Columns of records would have the same name.
    """
    parts = []
    for index, (part, schema) in enumerate(zip(options.parts, schemas, strict=True)):
        own = [name.removeprefix(f".{index}" if name.startswith(".") else part.prefix) for name in schema.names]
        rows = pa.schema([column.with_name(name) for column, name in zip(schema, own, strict=True)])
        of_part = {key.removeprefix(part.prefix): said for key, said in classes.items() if key.startswith(part.prefix)}
        if part.source.kind == TABLE:
            made: Expansion = _Columns(pa.schema([column for column in rows if not column.name.startswith(".")]))
        else:
            made = kind_named(part.source.kind).expansion(part.source, rows, of_part)
        parts.append(ExpandedPart(part.prefix, tuple(schema.names), rows, made))
    _check_names(options, [[part.prefix + name for name in part.made.schema.names] for part in parts])
    return tuple(parts)


def _check_names(options: MixedSource, names: Sequence[Sequence[str]]) -> None:
    """Refuses columns of records that would have the same name."""
    owners = {options.key: "`key`"}
    for part, mine in zip(options.parts, names, strict=True):
        for name in mine:
            if (other := owners.setdefault(name, part.title)) is not part.title:
                raise ConfigError(
                    f"source.mixed.parts: {other} and {part.title} both give a column {name!r}. Set `name: …` in one "
                    "of the parts: it begins the names of its columns."
                )
