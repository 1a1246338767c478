"""A table of files and their classes: CSV, Parquet or JSON lines."""

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json, parquet

from tfr_assets.errors import SourceError
from tfr_assets.sources.model.label_options import LabelOptions
from tfr_assets.storage.file_names import format_of
from tfr_assets.storage.git_lfs import IS_POINTER
from tfr_assets.storage.raw_files import RawFile, reading


def read_label_table(
    options: LabelOptions, storage_options: Mapping[str, Any]
) -> tuple[pa.StringArray, pa.StringArray]:
    """Returns the files and the classes of a label table as text, without gaps.

    Args:
        options: `table`, `file` and `label` of these.
        storage_options: Passed to fsspec.

    Raises:
        SourceError: It is not there or not a table, has no such columns, or gaps in them.
    """
    where = options.table
    path = where if "://" in where else str(Path(where).expanduser())
    file = RawFile(path, format_of(path) or "", storage_options)
    if (reader := _READERS.get(file.format)) is None:
        raise SourceError(f"{where}: is not a label table: its name must end in .csv, .tsv, .parquet or .jsonl.")
    if file.is_local and not Path(path).is_file():
        raise SourceError(f"{where}: there is no such file, though `labels` names it.")
    if file.is_pointer():
        raise SourceError(f"{where}: {IS_POINTER}.")
    with reading(where):
        table = reader(file, (options.file, options.label))
    for name in (options.file, options.label):
        if (count := table.schema.names.count(name)) != 1:
            has = f"{count} columns" if count else "no column"
            raise SourceError(f"{where}: has {has} {name!r}. It has: {', '.join(table.schema.names)}.")
    return _full_column(table, options.file, where), _full_column(table, options.label, where)


def _full_column(table: pa.Table, name: str, where: str) -> pa.StringArray:
    with reading(where):
        column = pc.cast(table.column(name), pa.string()).combine_chunks()
    gap = pc.index(pc.equal(pc.fill_null(column, ""), ""), True).as_py()
    if gap >= 0:
        raise SourceError(f"{where}: row {gap + 1} has nothing in column {name!r}.")
    return column


def _read_csv(file: RawFile, columns: tuple[str, str]) -> pa.Table:
    for _, stream in file.texts():
        return csv.read_csv(
            stream,
            parse_options=csv.ParseOptions(delimiter="\t" if file.endings[0] == ".tsv" else ","),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string())),
        )
    raise AssertionError("a file has a text, and a zip without files is an error")


def _read_json(file: RawFile, columns: tuple[str, str]) -> pa.Table:
    """Reads texts and whole numbers as such: left to itself, Arrow would take some texts for dates."""
    first: pa.ArrowInvalid | None = None
    for types in product((pa.string(), pa.int64()), repeat=2):
        schema = pa.schema(list(zip(columns, types, strict=True)))
        options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
        try:
            for _, stream in file.texts():
                return json.read_json(stream, parse_options=options)
        except pa.ArrowInvalid as error:
            first = first or error
    assert first
    raise first


def _read_parquet(file: RawFile, columns: tuple[str, str]) -> pa.Table:
    with file.open() as stream, parquet.ParquetFile(stream) as opened:
        schema = opened.schema_arrow
        return opened.read(list(columns)) if set(columns) <= set(schema.names) else schema.empty_table()


_READERS: Mapping[str, Callable[[RawFile, tuple[str, str]], pa.Table]] = {
    "csv": _read_csv,
    "jsonl": _read_json,
    "parquet": _read_parquet,
}
