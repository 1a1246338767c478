"""Which split each row belongs to, so that new data never moves old rows from one split to another.

by a hash   the first 64 bits of BLAKE2b over the row's key; below the first fraction: the first split, and so on
by column   its value is the name of the split
by folder   the name of the first folder below the source's path is the name of the split
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, Strict

from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.layout import check_split_name
from tfr_assets.option_groups import Column, ColumnName, Expect, options, problem, problem_at
from tfr_assets.sources.model.kinds import FILE, SPLIT, SPLIT_BY

ONLY_SPLIT = "train"


_Shares = Annotated[
    Mapping[Column, Annotated[float, Strict(), Expect("a share such as 0.1")]],
    Expect("shares such as {train: 0.8, test: 0.2}", deep=False),
]
_Names = Annotated[tuple[str, ...], Expect("a list of names, such as [train, test]")]


@options("splits")
class Splits:
    """How rows are assigned to splits. Exactly one of `fractions`, `column` and `folder` is set.

    Attributes:
        fractions: Share of each split, by a hash of the row's key; they sum to 1.
        key: The column that is hashed. Default: a file's path below the source's where rows are files, a mixed record's
            key, a line's or row's text, the bytes of an image in a table, otherwise all columns of the row.
        column: The column whose value names the split.
        values: With `column`: the names of all splits, which are its values.
        folder: Names of the folders, first below the path, that are splits.

    Raises:
        ConfigError: A setting cannot work.
    """

    fractions: _Shares = Field(default_factory=dict, examples=[{"train": 0.8, "test": 0.2}])
    key: ColumnName | None = Field(default=None, examples=["user_id"])
    column: ColumnName | None = Field(default=None, examples=["part"])
    values: _Names = Field(default=(), examples=[["train", "test"]])
    folder: _Names = Field(default=(), examples=[["train", "test"]])

    def __post_init__(self) -> None:
        """Checks what goes together."""
        ways = [name for name in ("fractions", "column", "folder") if getattr(self, name)]
        if len(ways) != 1:
            raise problem("set exactly one of `fractions` (shares), `column` (with `values`) and `folder`")
        for name, of in (("key", "fractions"), ("values", "column")):
            if getattr(self, name) and of != ways[0]:
                raise problem_at((name,), f"has a meaning only with `{of}`; remove it")
        if self.column and not self.values:
            raise problem_at(("values",), "missing; list the column's values, such as [train, test]: each is a split")
        for name in self.names:
            try:
                check_split_name(name)
            except ConfigError as error:
                raise problem(str(error)) from error
        if len(set(self.names)) < len(self.names):
            raise problem(f"{', '.join(self.names)}: every split has a name of its own")
        for name, share in self.fractions.items():
            if not 0 < share <= 1:
                text = f"expected a share above 0 and up to 1, such as 0.1; found {share}"
                raise problem_at(("fractions", name), text, share)
        if self.fractions and abs((total := sum(self.fractions.values())) - 1) > 1e-6:
            raise problem(f"the shares sum to {total:g} instead of 1")

    @property
    def names(self) -> tuple[str, ...]:
        """The splits, in order."""
        return tuple(self.fractions) or self.values or self.folder

    @property
    def by_content(self) -> bool:
        """Whether what a row holds is hashed, if it is not a file."""
        return bool(self.fractions) and self.key is None

    def assign(self, rows: pa.RecordBatch, first_row: int, where: str) -> np.ndarray:
        """Returns the number of each row's split: int64 of shape (rows,).

        Args:
            rows: Rows of a table or of a listing; by folder, with the column `.split`. What a column `.split_by` holds
                goes before the column or key of that row.
            first_row: Number of the first of them, for messages.
            where: What the rows are from, for messages.

        Raises:
            SourceError: A row belongs to none of the splits.
            ConfigError: There is no such column, or it cannot be hashed.
        """
        if self.fractions:
            bounds = np.cumsum(list(self.fractions.values()))[:-1] * 2.0**64
            hashes = np.fromiter(map(_hash, self._keys(rows, where)), np.uint64, rows.num_rows)
            return np.searchsorted(bounds, hashes.astype(np.float64), side="right").astype(np.int64)
        name = self.column or SPLIT
        found = _text(_column(rows, name, "splits.column", where), name, "splits.column")
        numbers = pc.index_in(found, value_set=pa.array(self.names, found.type))
        if numbers.null_count:
            row = pc.index(numbers.is_null(), True).as_py()
            what = f"column {self.column!r}" if self.column else "the folder"
            raise SourceError(
                f"{where}: row {first_row + row}: {what} names the split {found[row].as_py()!r}, which is none of "
                f"{', '.join(self.names)}. List it under `splits`, or leave such rows out of the source."
            )
        return np.asarray(numbers, np.int64)

    def _keys(self, rows: pa.RecordBatch, where: str) -> Iterator[bytes | None]:
        if self.key is not None:
            keys = _text(_column(rows, self.key, "splits.key", where), self.key, "splits.key")
        elif found := {SPLIT_BY, FILE} & set(rows.schema.names):
            keys = rows.column(SPLIT_BY if SPLIT_BY in found else FILE)
        else:
            absent, between = (pa.scalar(mark, pa.large_string()) for mark in ("\0", "\x1f"))
            texts = [pc.fill_null(_text(rows.column(name), name, None), absent) for name in rows.schema.names]
            keys = pc.binary_join_element_wise(*texts, between)
        return iter(keys.cast(pa.large_binary()).to_pylist())


SPLIT_FIELDS = {field.name for field in fields(Splits)}


def _hash(key: bytes | None) -> int:
    return int.from_bytes(hashlib.blake2b(key or b"", digest_size=8).digest(), "big")


def _column(rows: pa.RecordBatch, name: str, field_name: str, where: str) -> pa.Array:
    if SPLIT_BY in rows.schema.names:
        return rows.column(SPLIT_BY)
    if name not in rows.schema.names:
        known = ", ".join(name for name in rows.schema.names if not name.startswith("."))
        raise ConfigError(f"{field_name}: {where} has no column {name!r}. It has: {known}.")
    return rows.column(name)


def _text(array: pa.Array, name: str, field_name: str | None) -> pa.Array:
    """Returns values as text: what is hashed or compared must not depend on an integer's width."""
    try:
        return array.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        remedy = "choose another column" if field_name else "name a column that distinguishes rows under `splits.key`"
        raise ConfigError(
            f"{field_name or 'splits'}: column {name!r} of type {array.type} cannot be hashed as text; {remedy}."
        ) from error


def assign_splits(
    batches: Iterator[pa.RecordBatch], splits: Splits, folder: Path, where: str
) -> Iterator[tuple[str, int, Iterator[pa.RecordBatch]]]:
    """Yields every split's name, number of rows, and rows, one split after another.

    Args:
        batches: Rows of one schema, in order; at least one batch, which may be empty.
        splits: How they are assigned.
        folder: For a file per split, which takes as much room as its rows in memory; the caller removes it.
        where: What the rows are from, for messages.
    """
    paths = [folder / f"split-{number:03d}.arrow" for number in range(len(splits.names))]
    counts = [0] * len(paths)
    with ExitStack() as stack:
        writers: Sequence[Any] = []
        for batch in batches:
            if not writers:
                files = [stack.enter_context(pa.OSFile(str(path), "wb")) for path in paths]
                writers = [stack.enter_context(pa.ipc.new_stream(file, batch.schema)) for file in files]
            numbers = splits.assign(batch, sum(counts), where)
            for number in np.unique(numbers):
                chosen = np.flatnonzero(numbers == number)
                counts[number] += len(chosen)
                writers[number].write_batch(batch.take(pa.array(chosen)))
    for name, count, path in zip(splits.names, counts, paths, strict=True):
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            yield name, count, _with_schema(reader)
        path.unlink()


def _with_schema(reader: pa.RecordBatchStreamReader) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pylist([], reader.schema)
    yield from reader
