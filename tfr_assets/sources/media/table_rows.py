"""Rows of a table as a listing: each is called NAME:NUMBER, its file and its number in there, from 1."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import SourceError
from tfr_assets.sources.files.paths import DataFiles, find_data
from tfr_assets.sources.inventory.inventory import Inventory
from tfr_assets.sources.inventory.rows import read_rows
from tfr_assets.sources.inventory.take import take_inventory
from tfr_assets.sources.model.ignored import links_warning
from tfr_assets.sources.model.kinds import FILE, Found
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.tables.csv_files import CsvReader


def take_table(source: Source, texts: Collection[str], landing: Path, found: Found) -> Inventory:
    """Takes the inventory of a table of which some columns are needed, and needed as text.

    In CSV these columns are read as text even where it looks like numbers, so that "007" stays what it is; likewise
    dates in JSON lines.

    Args:
        source: A table.
        texts: Names of the columns.
        landing: Folder for landed files.
        found: Its files and bytes are counted, and its `progress` is called.

    Raises:
        SourceError: There is no such column, or the table cannot be read.
    """
    data = find_data(source) if source.path else DataFiles([])
    files = data.files
    if files and files[0].format == "csv":
        _, empty = next(CsvReader(source.options).batches(files, None))
        _check_columns(empty.schema, texts, str(source))
        source = _with_texts(source, texts)
    inventory = take_inventory(source, landing, found.progress)
    _check_columns(inventory.schema, texts, str(source))
    dates = [name for name in texts if pa.types.is_temporal(inventory.schema.field(name).type)]
    if dates and files and files[0].format == "jsonl":
        inventory = take_inventory(_with_texts(source, dates), landing, found.progress)
    found.files += len(inventory.files)
    found.bytes += inventory.bytes
    found.warnings += filter(None, [links_warning(len(data.links))])
    return inventory


def _with_texts(source: Source, columns: Collection[str]) -> Source:
    types = dict.fromkeys(columns, "string") | dict(source.options.get("column_types") or {})
    return replace(source, options={**source.options, "column_types": types})


def table_rows(
    inventory: Inventory, root: str, columns: Sequence[str] | None = None
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yields batches of rows, which have their names in the column `.file`, with the path of the file they are from.

    Args:
        inventory: Of a table that is neither split nor shuffled.
        root: Folder that names of files start below.
        columns: Names of columns, in the order wished; None: all.
    """
    schema = inventory.schema if columns is None else pa.schema([inventory.schema.field(name) for name in columns])
    yield "", _named(pa.RecordBatch.from_pylist([], schema), "", 0)
    files = [(file.path, file.rows) for file in inventory.files] or [(str(inventory.source), inventory.rows)]
    before = 0
    for path, rows in files:
        name, at = path.removeprefix(root).lstrip("/"), 1
        for batch in read_rows(inventory, before, before + rows, schema.names):
            yield path, _named(batch, name, at)
            at += batch.num_rows
        before += rows


def key_texts(keys: pa.Array, where: str) -> pa.StringArray:
    """Returns keys as text: "7" for 7.

    Raises:
        SourceError: They are neither texts nor whole numbers; `where` names them.
    """
    type_ = keys.type
    if not (pa.types.is_integer(type_) or type_ in (pa.string(), pa.large_string(), pa.null())):
        raise SourceError(f"{where} is {type_}. Keys are texts or whole numbers: choose another column, or convert it.")
    return keys.cast(pa.string())


def numbered(name: str, numbers: np.ndarray) -> pa.StringArray:
    """Returns NAME:NUMBER for each number."""
    return pc.binary_join_element_wise(pa.scalar(name), pa.array(numbers).cast(pa.string()), ":")


def _named(batch: pa.RecordBatch, file: str, first: int) -> pa.RecordBatch:
    return batch.add_column(0, FILE, numbered(file, np.arange(first, first + batch.num_rows)))


def _check_columns(schema: pa.Schema, names: Collection[str], where: str) -> None:
    for name in names:
        if name not in schema.names:
            raise SourceError(f"{where}: there is no column {name!r}. There are: {', '.join(schema.names)}.")
