"""Data → the rows of shards, as Arrow batches.

Data whose length is known is cut into consecutive shards that differ by one row at most, as `layout.assign_rows` cuts
a dataset. Data of unknown length is distributed while it comes: the first 4 MB are looked at, to
see how many rows `block` are 1 MB (4,096 at the most, and so few that all shards get some of these rows), and

    row r goes to shard (r // block) % shards

so that shards differ by one block at most, and equal data gives equal shards.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from tfr_assets.layout import assign_rows
from tfr_assets.sources.tables.dict_rows import ShapesVaryError
from tfr_assets.sources.tables.python_values import Form
from tfr_assets.writing.writers.data import as_batches, is_table
from tfr_assets.writing.writers.pieces import End, Piece

_LOOK_AHEAD = 4 << 20
_PIECE_BYTES, _PIECE_ROWS = 4 << 20, 16_384  # an encoder takes 0.2 ms to look at a batch of 20 columns, however small
_BLOCK_BYTES, _BLOCK_ROWS = 1 << 20, 4_096


@dataclass(frozen=True)
class TableRows:
    """Rows that are all there, any of which can be had at any time, from any thread.

    Attributes:
        table: The rows.
        serialized: Whether they are records already.
        shards: Number of shards.
    """

    table: pa.Table
    serialized: bool
    shards: int

    @property
    def schema(self) -> pa.Schema:
        """Columns of every batch."""
        return self.table.schema

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.table.num_rows

    def pieces_of(self, shard: int) -> Iterator[Piece | End]:
        """Yields the rows of one shard, in order."""
        assigned = assign_rows(self.count, self.shards)[shard]
        rows = self.table.slice(assigned.start, assigned.rows)
        first = assigned.start
        most = _rows_of_size(_PIECE_BYTES, self.count, self.table.nbytes)
        for batch in rows.to_batches(max_chunksize=min(most, _PIECE_ROWS)):
            yield Piece(shard, first, batch)
            first += batch.num_rows
        yield End(shard, assigned.rows)

    def pieces(self) -> Iterator[Piece | End]:
        """Yields all rows in order, shard by shard."""
        return chain.from_iterable(map(self.pieces_of, range(self.shards)))


@dataclass(frozen=True)
class StreamRows:
    """Rows that come once and in order, to the thread that draws them.

    Attributes:
        batches: The rows, of one schema.
        schema: Their columns.
        serialized: Whether they are records already.
        shards: Number of shards.
        block: Rows that go to a shard before the next one's turn.
    """

    batches: Iterator[pa.RecordBatch]
    schema: pa.Schema
    serialized: bool
    shards: int
    block: int
    count = None

    def pieces(self) -> Iterator[Piece | End]:
        """Yields all rows in order, shards alternating."""
        records = [0] * self.shards
        row = 0
        for batch in self.batches:
            at = 0
            while at < batch.num_rows:
                shard = row // self.block % self.shards
                piece = batch.slice(at, self.block - row % self.block)
                yield Piece(shard, row, piece)
                records[shard] += piece.num_rows
                row += piece.num_rows
                at += piece.num_rows
        yield from map(End, range(self.shards), records)


Rows = TableRows | StreamRows


def rows_of(data: Any, shards: int) -> Rows:
    """Returns the rows of what a program has.

    Args:
        data: See `tfr_assets.writing.write.write`.
        shards: Number of shards.

    Raises:
        SourceError: It is of no known form, there is nothing that shows its columns, or its beginning is inconsistent.
    """
    forms: dict[str, Form] = {}
    while True:
        try:
            return _rows_of(data, shards, forms)
        except ShapesVaryError as error:
            if not isinstance(data, list | tuple):
                raise
            forms[error.column] = error.form  # from the first row on, so that later ones fit


def _rows_of(data: Any, shards: int, forms: Mapping[str, Form]) -> Rows:
    serialized, batches = as_batches(data, forms)
    head = deque([next(batches)])  # without rows, it tells the columns
    schema = head[0].schema
    size = 0
    known = is_table(data) or isinstance(data, list | tuple | Mapping)
    for batch in batches:
        head.append(batch)
        size += batch.nbytes
        if size >= _LOOK_AHEAD and not known:
            rows = sum(each.num_rows for each in head)
            block = max(1, min(_rows_of_size(_BLOCK_BYTES, rows, size), _BLOCK_ROWS, rows // shards))
            return StreamRows(chain(_popped(head), batches), schema, serialized, shards, block)
    return TableRows(pa.Table.from_batches(head, schema), serialized, shards)


def null_counts(rows: Rows) -> dict[str, int]:
    """Returns the nulls of columns that are all there; a struct's fields may be null where it is not."""
    if isinstance(rows, StreamRows):
        return {}
    columns = zip(rows.schema, rows.table.columns, strict=True)
    return {field.name: column.null_count for field, column in columns if not pa.types.is_struct(field.type)}


def _rows_of_size(wanted: int, rows: int, size: int) -> int:
    """Returns how many of `rows` rows, of `size` bytes in all, are `wanted` bytes; at least 1."""
    return max(1, wanted * rows // max(size, 1))


def _popped(head: deque[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while head:  # what has been drawn need not be kept
        yield head.popleft()
