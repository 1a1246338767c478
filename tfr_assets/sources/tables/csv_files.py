"""CSV → Arrow. Column types hold for the whole input: all files, not only the first block of the first one."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pcsv

from tfr_assets.errors import SourceError
from tfr_assets.sources.model.table_options import column_types
from tfr_assets.sources.tables.arrow_files import guess
from tfr_assets.sources.tables.schemas import (
    LACKING,
    NoCommonTypeError,
    TypesTooNarrowError,
    check_same,
    conform,
    empty_batch,
    in_milliseconds,
    plain_schema,
    widen,
)
from tfr_assets.storage.file_names import endings
from tfr_assets.storage.raw_files import FileBatches, RawFile, reading

_SHOWN_NAMES = 8
_BLOCK = 8 << 20  # a row must fit; types are inferred from the first block, then checked against all others
_CONVERSION = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (.+?): (.*)", re.DOTALL)


@dataclass(frozen=True)
class CsvReader:
    """Reads the CSV files of a source.

    Attributes:
        options: The source's options.
        union: Whether files may lack columns that others have; these are null there.
    """

    options: Mapping[str, Any]
    union: bool = False

    def infer(self, files: Sequence[RawFile]) -> dict[str, pa.DataType]:
        """Returns the type of each column that all text of all files can be parsed as.

        Everything is read as strings; each block is written again and parsed with inference, and the types of all
        blocks are widened to common ones, at the widest to string. Arrow infers, as where the first block tells enough:
        another library, such as DuckDB or Polars, would give the same file other types when it is large.
        """
        given = column_types(self.options)
        types: dict[str, pa.DataType] = {}
        for file in files:
            for where, text in file.texts():
                names = self._names(where, file, text)
                types |= {name: pa.null() for name in names if name not in types}
            strings = {**dict.fromkeys(types, pa.string()), **dict.fromkeys(given, pa.binary())}
            for where, text in file.texts():
                with reading(where):
                    reader, start = self._open(where, file, text, strings, nulls=False)
                    for batch in self._rows(where, reader, start, final=True):
                        for name, found in self._infer_block(batch.drop_columns(list(given))).items():
                            types[name] = _widen(types[name], found)
        return {**{name: in_milliseconds(type_) for name, type_ in types.items()}, **given}

    def batches(self, files: Sequence[RawFile], types: Mapping[str, pa.DataType] | None) -> FileBatches:
        """Yields the rows of all files in order, in batches of one schema, each with its file's number.

        Args:
            files: Files with the same columns, in whatever order.
            types: Of each column. None: as the first block of the first file suggests.

        Raises:
            TypesTooNarrowError: With `types` None: text that they cannot hold; `infer` finds the right ones.
            SourceError: A file is not CSV, or has other columns than the first.
        """
        first: tuple[pa.Schema, str] | None = None
        if self.union:
            types = types or self.infer(files)
            first = (pa.schema(list(types.items())), "")
        for index, file in enumerate(files):
            for where, text in file.texts():
                with reading(where):
                    given = types or (dict(zip(first[0].names, first[0].types, strict=True)) if first else {})
                    given = {**given, **column_types(self.options)}
                    final = types is not None
                    reader, start = self._open(where, file, text, given, final=final)
                    schema = plain_schema(reader.schema, where, self._name_columns(reader.schema))
                    if first is None:
                        first = (self._of_text(schema), where)
                    elif not self.union:
                        check_same(schema, where, *first, LACKING)
                    yield index, empty_batch(first[0], where)
                    for batch in self._rows(where, reader, start, final):
                        yield index, conform(batch, first[0])

    def _of_text(self, schema: pa.Schema) -> pa.Schema:
        """Returns the schema with times in milliseconds, unless the user names another type."""
        given = column_types(self.options)
        types = [given.get(field.name) or in_milliseconds(field.type) for field in schema]
        return pa.schema(list(zip(schema.names, types, strict=True)))

    def _name_columns(self, schema: pa.Schema) -> str:
        """Returns what to do where names are missing in the header, or there is none."""
        names = [name.strip() or "index" for name in schema.names[:_SHOWN_NAMES]]
        shown = ", ".join(names + ["…"] * (len(schema.names) > _SHOWN_NAMES))
        skip = 0 if self.options.get("column_names") else self.options.get("skip_rows", 0) + 1
        rest = f", skip_rows: {skip}" if skip else ""
        return (
            f"Name all columns, such as by `options: {{column_names: [{shown}]{rest}}}`; without a header, skip no row."
        )

    def _rows(
        self, where: str, reader: pcsv.CSVStreamingReader, start: "_Start", final: bool
    ) -> Iterator[pa.RecordBatch]:
        last = ""
        try:
            for batch in reader:
                yield batch
                column = batch.column(batch.num_columns - 1)
                last = column[-1].as_py() if batch.num_rows and pa.types.is_string(column.type) else ""
        except pa.ArrowInvalid as error:
            raise self._explain(where, error, reader.schema.names, final) from error
        # Only a quoted value may have several lines. If it ends the file, the file ends with its quote.
        quote = (self.options.get("quote_char") or '"').encode()
        if last and "\n" in last and not start.tail.replace(b"\0", b"").rstrip().endswith(quote):
            raise SourceError(
                f"{where}: a quote is opened and never closed; everything from {last[:40]!r} on would be one value. "
                "Close it, or, if quotes have no meaning in this file, set `options: {quote_char: null}`."
            )

    def _names(self, where: str, file: RawFile, text: BinaryIO) -> list[str]:
        with reading(where):
            return list(self._open(where, file, text, {})[0].schema.names)

    def _open(
        self,
        where: str,
        file: RawFile,
        text: BinaryIO,
        types: Mapping[str, pa.DataType],
        nulls: bool = True,
        final: bool = True,
    ) -> tuple[pcsv.CSVStreamingReader, "_Start"]:
        options = self.options
        is_tsv = ".tsv" in (file.endings[0], endings(where)[0])  # of the file, or of one in a zip
        delimiter = options.get("delimiter") or ("\t" if is_tsv else ",")
        start = _Start(text)
        if not start.begin.strip():
            raise SourceError(f"{where}: is empty ({len(start.begin)} bytes): not even a header. Get it again.")
        if hint := guess(start.begin):
            raise SourceError(f"{where}: is not CSV: it begins with {start.begin[:16]!r}.{hint}")
        convert: dict[str, Any] = {"column_types": types, "strings_can_be_null": False}
        if nulls and options.get("null_values") is not None:
            convert |= {"null_values": list(options["null_values"]), "strings_can_be_null": True}
        unknown = set() if self.union else set(column_types(options))
        try:
            reader = pcsv.open_csv(
                start,
                # One thread: errors then name the row, and parsing is not slower.
                pcsv.ReadOptions(
                    use_threads=False,
                    block_size=_BLOCK,
                    skip_rows=options.get("skip_rows", 0),
                    column_names=options.get("column_names"),
                    encoding=options.get("encoding", "utf-8"),
                ),
                pcsv.ParseOptions(
                    delimiter=delimiter,
                    quote_char=options.get("quote_char", '"') or False,
                    newlines_in_values=True,
                ),
                pcsv.ConvertOptions(**convert),
            )
            schema = reader.schema
        except pa.ArrowInvalid as error:
            raise self._explain(where, error, self._header(start.begin, delimiter), final) from error
        if missing := sorted(unknown - set(schema.names)):
            raise SourceError(
                f"{where}: `column_types` names {missing[0]!r}, but the columns are: {', '.join(schema.names)}."
            )
        for field in schema:
            if pa.types.is_binary(field.type) and field.name not in types:
                raise SourceError(
                    f"{where}: column {field.name!r} holds bytes that are not {options.get('encoding', 'UTF-8')} text. "
                    "Set the file's encoding, such as `options: {encoding: latin-1}`, "
                    f"or `column_types: {{{field.name}: binary}}` if they are not text."
                )
        return reader, start

    def _header(self, begin: bytes, delimiter: str) -> list[str]:
        """Returns the column names as far as a file's first bytes show them, for messages."""
        if names := self.options.get("column_names"):
            return list(names)
        lines = begin.decode(self.options.get("encoding", "utf-8"), errors="replace").splitlines()
        return next(csv.reader(lines[self.options.get("skip_rows", 0) :], delimiter=delimiter), [])

    def _infer_block(self, batch: pa.RecordBatch) -> dict[str, pa.DataType]:
        """Returns the types that Arrow infers from all of these strings together."""
        sink = pa.BufferOutputStream()
        pcsv.write_csv(batch, sink, pcsv.WriteOptions(quoting_style="all_valid"))
        text = sink.getvalue()
        nulls = self.options.get("null_values")
        again = pcsv.read_csv(
            pa.BufferReader(text),
            pcsv.ReadOptions(use_threads=False, block_size=text.size + 1),
            pcsv.ParseOptions(newlines_in_values=True),
            pcsv.ConvertOptions() if nulls is None else pcsv.ConvertOptions(null_values=list(nulls)),
        )
        return dict(zip(again.schema.names, again.schema.types, strict=True))

    def _explain(self, where: str, error: Exception, names: Sequence[str], final: bool) -> Exception:
        message = str(error)
        if match := _CONVERSION.search(message):
            if not final:
                return TypesTooNarrowError(message)
            column, row, type_, problem = match.groups()
            name = f"column {names[int(column)]!r}" if int(column) < len(names) else f"column {int(column) + 1}"
            row = f"row {row}, " if row else ""
            if "UTF8" in problem:
                encoding = self.options.get("encoding", "UTF-8")
                return SourceError(
                    f"{where}: {row}{name}: bytes that are not {encoding} text. "
                    "Set the file's encoding, such as `options: {encoding: latin-1}`."
                )
            return SourceError(
                f"{where}: {row}{name}: {problem:.100} cannot be read as {type_}. Correct it, or the type."
            )
        if "straddling" in message:
            return SourceError(
                f"{where}: a row is longer than {_BLOCK >> 20} MB, or a quote is opened and never closed. "
                "If quotes have no meaning in this file, set `options: {quote_char: null}`."
            )
        if match := re.search(
            r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)", message, re.S
        ):
            row, expected, found, content = match.groups()
            return SourceError(
                f"{where}: row {row} has {found} values where {expected} are expected: {content[:80]!r}. "
                "Correct it, or set `options: {delimiter: …}` or `quote_char` if columns are distinguished otherwise."
            )
        return SourceError(f"{where}: cannot be read as CSV: {message:.300}")


def _widen(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    try:
        return widen(a, b)
    except NoCommonTypeError:
        return pa.string()


class _Start:
    """A stream whose first bytes can be looked at before they are read, and the last ones after that."""

    def __init__(self, stream: BinaryIO) -> None:
        self.begin = stream.read(512)
        self.tail = b""
        self._pending = self.begin
        self._stream = stream
        self.closed = False
        self.mode = "rb"

    def read(self, size: int = -1) -> bytes:
        held, self._pending = self._pending, b""
        if 0 <= size < len(held):
            held, self._pending = held[:size], held[size:]
        data = held + self._stream.read(size - len(held) if size >= 0 else -1)
        self.tail = (self.tail + data[-16:])[-16:]
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True
