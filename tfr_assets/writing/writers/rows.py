"""Whatever a program has → the rows of shards, as Arrow batches.

Data whose length is known is cut into consecutive shards that differ by one row at most, as `layout.assign_rows` cuts
a dataset. Data that only its end tells the length of is dealt out while it comes: the first 16 MB are looked at, to
see how many rows `block` are 1 MB (4,096 at the most, and so few that all shards get some of these rows), and

    row r goes to shard (r // block) % shards

so that shards differ by one block at most, and equal data gives equal shards.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_assets.errors import SourceError, TfrError
from tfr_assets.layout import assign_rows
from tfr_assets.sources.callables import _tables
from tfr_assets.sources.dict_rows import ShapesVaryError
from tfr_assets.sources.python_values import Form, as_arrow, as_numpy
from tfr_assets.sources.schema import check_same, conform, empty_batch, plain_schema
from tfr_assets.writing.writers.payloads import PAYLOADS
from tfr_assets.writing.writers.pieces import End, Piece

_NAME = "data"  # what messages call it
_LOOK_AHEAD = 16 << 20
_PIECE_BYTES, _PIECE_ROWS = 4 << 20, 16_384  # an encoder takes 0.2 ms to look at a batch of 20 columns, however small
_BLOCK_BYTES, _BLOCK_ROWS = 1 << 20, 4_096
_PAYLOADS_AT_ONCE = 4_096
_BYTES = bytes | bytearray | memoryview


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
        SourceError: It is no data, there is nothing that tells its columns, or its beginning is inconsistent.
    """
    if isinstance(data, Mapping):
        data = _from_columns(data)
    forms: dict[str, Form] = {}
    while True:
        try:
            return _rows_of(data, shards, forms)
        except ShapesVaryError as error:
            if not isinstance(data, list | tuple):
                raise
            forms[error.column] = error.form  # from the first row on, so that later ones fit


def _rows_of(data: Any, shards: int, forms: Mapping[str, Form]) -> Rows:
    serialized, batches = _batches(data, forms)
    head = deque([next(batches)])  # without rows, it tells the columns
    schema = head[0].schema
    size = 0
    known = _is_table(data) or isinstance(data, list | tuple)
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
    """Returns how many of so many rows of so many bytes are `wanted` bytes; at least 1."""
    return max(1, wanted * rows // max(size, 1))


def _popped(head: deque[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while head:  # what has been drawn need not be kept
        yield head.popleft()


def _is_table(data: object) -> bool:
    return isinstance(data, pa.Table | pa.RecordBatch) or type(data).__module__.split(".")[0] == "pandas"


def _batches(data: Any, forms: Mapping[str, Form]) -> tuple[bool, Iterator[pa.RecordBatch]]:
    """Returns whether data consists of records that are serialized already, and its batches, the first without rows."""
    if _is_table(data) or hasattr(data, "__arrow_c_stream__") or not isinstance(data, Iterable):
        return False, _of_one_schema(data, forms)
    items = _drawn(data)
    head = list(islice(items, 1))
    items = chain(head, items)
    serialized = bool(head) and (isinstance(head[0], _BYTES) or hasattr(head[0], "SerializeToString"))
    return serialized, _of_payloads(items) if serialized else _of_one_schema(items, forms)


def _drawn(items: Iterable[Any]) -> Iterator[Any]:
    """Yields the items; what the program raises meanwhile becomes a SourceError with the original as its cause."""
    try:
        yield from items
    except (TfrError, MemoryError):
        raise
    except Exception as error:
        raise SourceError(f"{_NAME}: raised {type(error).__name__}: {error}") from error


def _of_one_schema(data: Any, forms: Mapping[str, Form]) -> Iterator[pa.RecordBatch]:
    first: pa.Schema | None = None
    for index, table in enumerate(_tables(_NAME, data, forms)):
        where = f"{_NAME}: batch {index}"
        schema = plain_schema(table.schema, where)
        if first is None:
            first = schema
            yield empty_batch(schema, where)
        # a part of a column without any value has no type of its own
        typed = [first.field(f.name) if pa.types.is_null(f.type) and f.name in first.names else f for f in schema]
        check_same(pa.schema(typed), where, first, f"{_NAME}: batch 0")
        for batch in table.to_batches():
            yield conform(batch, first)
    if first is None:
        raise SourceError(f"{_NAME}: holds no rows, and nothing that tells its columns; give at least an empty table")


def _of_payloads(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    yield empty_batch(PAYLOADS, _NAME)
    waiting: list[bytes] = []
    size = 0
    for index, item in enumerate(items):
        waiting.append(_payload(item, index))
        size += len(waiting[-1])
        if len(waiting) == _PAYLOADS_AT_ONCE or size >= _PIECE_BYTES:
            yield pa.record_batch([waiting], PAYLOADS)
            waiting, size = [], 0
    yield pa.record_batch([waiting], PAYLOADS)


def _payload(item: Any, index: int) -> bytes:
    if isinstance(item, _BYTES):
        return bytes(item)
    if hasattr(item, "SerializeToString"):
        return item.SerializeToString(deterministic=True)
    raise SourceError(
        f"{_NAME}: item {index} is a value of type {type(item).__name__}, but those before it are records: bytes, or "
        "messages such as tf.train.Example. All must be such"
    )


def _from_columns(columns: Mapping[str, Any]) -> pa.Table:
    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = _column(values)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SourceError(f"{_NAME}: column {name!r} cannot become Arrow: {error}") from error
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise SourceError(f"{_NAME}: columns are of different lengths: {lengths}")
    return pa.table(arrays)


def _column(values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if type(values).__module__.split(".")[0] == "pandas":
        return pa.Array.from_pandas(values)
    values = as_numpy(values)
    return pa.array(values) if isinstance(values, np.ndarray) and values.ndim == 1 else as_arrow(list(values))
