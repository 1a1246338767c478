"""The kind `text`: documents, lines, or a column of a table → records.

    text              string   the text
    text/tokens       list     with a tokenizer: numbers or texts
    text/filename     string   path below the source's folder; not for rows of a table
    text/class/label  int64    where texts have labels
    text/class/text   string

What becomes a record, `per`:

    document   a file as a whole: .txt .md .rst .html .htm .xml .tex, or those that `endings` names; the default of
               folders and patterns
    line       every line that is not empty, also of files that end in .gz, .bz2, .xz or .zst too; the default of a
               path that is one file
    row        the text in a column of CSV, JSON lines, Parquet or Arrow; the default where `column` is named

Text is decoded from `encoding` (default UTF-8), and a byte order mark removed; nothing else is changed. `max_length`
cuts it after so many characters, or with a tokenizer its tokens after so many. Of a tokenizer that is a function of the
user's own, the file that it is in decides whether records are still as they would be made now, not what it imports.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import SourceChanged
from tfr_assets.sources.files.contents import read_contents
from tfr_assets.sources.files.tree import root_of
from tfr_assets.sources.media.labels import label_columns, label_fields, made_nulls
from tfr_assets.sources.media.listing import Medium, list_files
from tfr_assets.sources.media.text.decoding import check_decodable, decode_all
from tfr_assets.sources.media.text.line_files import FILENAME, is_one_file, list_text_lines
from tfr_assets.sources.media.text.rows import list_text_rows
from tfr_assets.sources.media.text.tokens import Tokenizer, open_tokenizer
from tfr_assets.sources.model.kinds import BYTES, CRC, FILE, SPLIT_BY, Found
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.text_options import DOCUMENT, LINE, ROW, TEXT, TextOptions

_TOKENS = "text/tokens"
_TOKENIZER = ".tokenizer"  # binary(32): hash of what makes the tokens; here, so that rows of another one are other rows
_TOKEN_BYTES = 8  # of a number


def list_rows(source: Source, work: Path, found: Found) -> Iterator[pa.RecordBatch]:
    """Yields a row per document, line or row. See `kinds.Kind`.

    The row of a document names the file, that of a line or row has the text itself. Lines and rows are called
    NAME:NUMBER, their file and their number in there, from 1.
    """
    options = source.chosen.text
    assert options
    tokenizer = _tokenizer(source, options)
    by_content = source.splits is not None and source.splits.by_content
    for rows in _listed(source, options, work, found):
        if by_content and TEXT in rows.schema.names:
            rows = rows.append_column(SPLIT_BY, rows.column(TEXT))
        if tokenizer:
            digests = pa.repeat(pa.scalar(tokenizer.digest, pa.binary(32)), rows.num_rows)
            rows = rows.append_column(_TOKENIZER, digests)
        yield rows


def _listed(source: Source, options: TextOptions, work: Path, found: Found) -> Iterator[pa.RecordBatch]:
    per = ROW if options.rows_have_columns else options.per or (LINE if is_one_file(source) else DOCUMENT)
    if per == ROW:
        return list_text_rows(source, options, work, found)
    if per == LINE:
        return list_text_lines(source, options, found)

    def look(data: bytes) -> tuple[()]:
        check_decodable(data, options.encoding)
        return ()

    medium = Medium("document", TEXT, options.endings, pa.schema([]), look)
    return list_files(source, medium, options.label_options, options.skip, work, found, options.follow_links)


def _tokenizer(source: Source, options: TextOptions) -> Tokenizer | None:
    if options.tokenizer is None:
        return None
    return open_tokenizer(options.tokenizer, options.max_length, source.storage_options)


def expansion(source: Source, listing: pa.Schema, classes: Mapping[str, tuple[str, ...]]) -> "Texts":
    """Returns how rows of a listing become records. See `kinds.Kind`."""
    options = source.chosen.text
    assert options
    tokenizer = _tokenizer(source, options)
    of_documents = TEXT not in listing.names
    fields = [pa.field(TEXT, pa.large_string())]
    if tokenizer:
        fields.append(pa.field(_TOKENS, tokenizer.type))
    if of_documents or FILENAME in listing.names:
        fields.append(pa.field(FILENAME, pa.string()))
    schema = pa.schema([*fields, *label_fields(TEXT, classes)])
    root = root_of(options.path, source.storage_options) if of_documents else None
    return Texts(source, options, tokenizer, root, dict(classes), schema)


@dataclass(frozen=True)
class Texts:
    """The `kinds.Expansion` of texts.

    Attributes:
        source: What was listed.
        options: What it says.
        tokenizer: What cuts texts into tokens, if any.
        root: What documents lie below; None: the listing holds the texts.
        classes: Names of classes by feature column.
        schema: All columns that records can have.
    """

    source: Source
    options: TextOptions
    tokenizer: Tokenizer | None
    root: str | None
    classes: Mapping[str, tuple[str, ...]]
    schema: pa.Schema

    def sizes(self, rows: pa.RecordBatch) -> np.ndarray:
        """Returns about how many bytes each text takes, and its tokens as if there were one for four: int64 (rows,)."""
        lengths = rows.column(BYTES) if self.root is not None else pc.binary_length(rows.column(TEXT))
        sizes = pc.fill_null(lengths, 0).to_numpy().astype(np.int64)
        return sizes * (1 + _TOKEN_BYTES // 4) if self.tokenizer else sizes

    def null_counts(self, listed: Mapping[str, int | None]) -> dict[str, int | None]:
        """Returns the nulls of the columns of `schema`. See `kinds.Expansion`."""
        return made_nulls(self.schema, listed)

    def expand(self, rows: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        """Returns the named columns of `schema`, in its order. See `kinds.Expansion`."""
        schema = pa.schema([field for field in self.schema if field.name in columns])
        made = label_columns(rows, TEXT, self.classes)
        if {TEXT, _TOKENS} & set(columns):
            made |= self._texts(rows, columns)
        if FILENAME in columns:
            made[FILENAME] = rows.column(FILE if self.root is not None else FILENAME)
        return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)

    def _texts(self, rows: pa.RecordBatch, columns: Collection[str]) -> dict[str, pa.Array]:
        texts = rows.column(TEXT) if self.root is None else self._documents(rows)
        if not self.tokenizer:
            most = self.options.max_length
            return {TEXT: texts if most is None else pc.utf8_slice_codeunits(texts, 0, most)}
        if _TOKENS not in columns:
            return {TEXT: texts}
        digests = pc.unique(rows.column(_TOKENIZER)).to_pylist()
        if digests != [self.tokenizer.digest] * len(digests):
            raise SourceChanged(
                f"{self.options.tokenizer}: is not what it was when the inventory was taken. Materialize raw again."
            )
        return {TEXT: texts, _TOKENS: self.tokenizer.encode(texts, rows.column(FILE))}

    def _documents(self, rows: pa.RecordBatch) -> pa.LargeStringArray:
        assert self.root is not None
        said = [rows.column(name) for name in (FILE, BYTES, CRC)]
        return decode_all(read_contents(self.root, self.source.storage_options, *said), self.options.encoding)
