"""Rows by number, from wherever the inventory says that they are."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from tfr_assets.errors import ConfigError, SourceChanged, SourceError
from tfr_assets.sources.inventory.inventory import Inventory
from tfr_assets.sources.landing.landed import SourceFile
from tfr_assets.sources.model.kinds import kind_named
from tfr_assets.sources.tables.arrow_files import BATCH_BYTES, read_file
from tfr_assets.sources.tables.schemas import conform
from tfr_assets.storage.mirror import bring
from tfr_assets.storage.raw_files import RawFile, reading

_rehashed: dict[tuple[str, str], str] = {}
_rehashing = threading.Lock()


def read_rows(
    inventory: Inventory, start: int, stop: int, columns: Sequence[str] | None = None, batch_rows: int = 16_384
) -> Iterator[pa.RecordBatch]:
    """Yields exactly the rows [start, stop), in order, with the inventory's schema.

    Before and after, each file is compared with the inventory. After the last batch, but not before, it is certain
    that all of them were rows of the inventory.

    Args:
        inventory: What `take_inventory` gave.
        start: First row, from 0.
        stop: Row after the last one, at most `inventory.rows`.
        columns: Names of top-level columns, in the order wished; None: all.
        batch_rows: Most rows of a batch; fewer, where they are so large that the batch would exceed 16 MB.

    Raises:
        ConfigError: There are no such rows or columns.
        SourceChanged: A file is not there any more, or its content is not what it was.
        SourceError: A file cannot be read.
    """
    if not 0 <= start <= stop <= inventory.rows:
        raise ConfigError(f"rows {start} to {stop}: the inventory of {inventory.source} has {inventory.rows} rows.")
    if batch_rows < 1:
        raise ConfigError(f"batch_rows: expected 1 or more, found {batch_rows}.")
    known_names = inventory.schema.names
    names = known_names if columns is None else list(columns)
    if missing := sorted(set(names).difference(known_names), key=names.index):
        known = ", ".join(known_names)
        raise ConfigError(f"column {missing[0]!r}: {inventory.source} has no such column. It has: {known}.")
    schema = pa.schema([inventory.schema.field(name) for name in names])
    if inventory.listing is None:
        return _read(inventory, start, stop, schema, inventory.schema, batch_rows)
    return _expanded(inventory, start, stop, schema, batch_rows)


def preview(inventory: Inventory, rows: int = 10) -> pa.Table:
    """Returns the first rows as a table."""
    batches = read_rows(inventory, 0, min(rows, inventory.rows), batch_rows=max(rows, 1))
    return pa.Table.from_batches(batches, inventory.schema)


def _expanded(
    inventory: Inventory, start: int, stop: int, schema: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yields the records' columns of listed rows, few at a time where the files are large."""
    listing = inventory.listing
    assert listing is not None
    if start == stop:  # of an empty slice, not even the folder need be there
        return
    expansion = kind_named(inventory.source.kind).expansion(inventory.source, listing, inventory.classes)
    for rows in _read(inventory, start, stop, listing, listing, batch_rows):
        ends = np.cumsum(expansion.sizes(rows))
        at = 0
        while at < rows.num_rows:
            before = ends[at - 1] if at else 0
            stop_at = max(at + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
            yield conform(expansion.expand(rows.slice(at, stop_at - at), schema.names), schema)
            at = stop_at


def _read(
    inventory: Inventory, start: int, stop: int, schema: pa.Schema, stored: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    before = 0
    for recorded in inventory.landed or inventory.files:
        low, high = max(start - before, 0), min(stop - before, recorded.rows)
        before += recorded.rows
        if low >= high:
            continue
        file = RawFile(recorded.path, recorded.format, inventory.source.storage_options)
        if inventory.landed:
            bring(Path(recorded.path))
        _check_unchanged(file, recorded)
        names = schema.names if len(schema) < len(stored) else None
        try:
            for batch in read_file(file, recorded.groups, low, high, names, min(batch_rows, recorded.most_rows)):
                yield conform(batch, schema)
        except SourceError:
            _check_unchanged(file, recorded)  # a change is the better explanation
            raise
        _check_unchanged(file, recorded)


def _check_unchanged(file: RawFile, recorded: SourceFile) -> None:
    """Raises SourceChanged if the file is not as recorded; one that was only touched or copied is as recorded."""
    with reading(file.path):
        _, signature = file.info()
        if signature == recorded.signature:
            return
        with _rehashing:
            key = (file.path, signature)
            if key not in _rehashed:
                _rehashed[key] = file.content_hash()
    if _rehashed[key] != recorded.fingerprint:
        raise SourceChanged(f"{file.path}: is not what it was when the inventory was taken. Materialize raw again.")
