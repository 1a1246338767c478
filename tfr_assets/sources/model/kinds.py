"""Kinds of raw data: how raw files become rows, and rows become what a record is made of.

    table    files of tables, or a Python function      rows are the records' columns already
    images   a folder of photographs  ─┐
    audio    a folder of recordings    │  `list_rows`: one small row per file, landed when the inventory is taken;
    text     documents, lines, columns │  `expand`: these rows and the files' bytes → columns, when shards are written
    mixed    several of these, by key ─┘

A listing holds no file's bytes, so it is cheap to keep, to shuffle, to split and to join, and a million files take no
more memory than a thousand.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from tfr_assets.sources.model.ignored import Ignored, log_line
from tfr_assets.units import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfr_assets.sources.model.source import Source

# Columns of a listing that are about a row rather than of its record begin with a dot. Of these
FILE = ".file"  # string: path below the source's folder, with "/"; unique; what splits hash and errors name
KEY = ".key"  # string: what parts of a mixed record are joined by
SPLIT = ".split"  # string: the split that the row's folder names, where splits are by folder
SPLIT_BY = (
    ".split_by"  # what determines the split of a row that is not a file: a value beside it, or its content; not landed
)
CLASS = ".class"  # string, null where unknown: the label's text
BYTES = ".bytes"  # int64: size of the file
CRC = ".crc32c"  # uint32: of the file's bytes, compared with them when they are read again
HASH = ".sha256"  # binary(32): of the file's bytes, for the inventory's fingerprint


class BadFileError(Exception):
    """A raw file that cannot become a record; its text says why, without the file's name."""


@dataclass
class Found:
    """What `list_rows` finds besides rows. Filled while rows are drawn, complete when they are exhausted.

    Attributes:
        files: Number of files that became rows.
        bytes: Size of these together.
        classes: Names of classes by feature column: the label is the position in it.
        made_by: What else determines the columns of records, such as the hash of a tokenizer's file.
        skipped: Number of files that were left out.
        first_skipped: The first of them, with the reasons.
        log: Where every skipped or ignored file goes, a line "FILE<tab>REASON" each.
        lists_ignored: Whether files of other endings are listed; not, where another part of a mixed source takes them.
        warnings: What is not an error, but should be known.
        progress: Called with (done, total or None) now and then: bytes, or files where the bytes are not known.
    """

    log: Path
    progress: Progress
    files: int = 0
    bytes: int = 0
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    made_by: list[str] = field(default_factory=list)
    skipped: int = 0
    first_skipped: list[tuple[str, str]] = field(default_factory=list)
    lists_ignored: bool = True
    warnings: list[str] = field(default_factory=list)

    def skip(self, file: str, reason: str) -> None:
        """Records that a file is left out."""
        self.skipped += 1
        if len(self.first_skipped) < MOST_SKIPPED_SHOWN:
            self.first_skipped.append((file, reason))
        with self.log.open("a", encoding="utf-8") as log:
            log.write(log_line(file, reason))

    def ignored(self, wanted: Iterable[str], noun: str) -> Ignored:
        """Returns what counts and lists the files that are not taken, because of their endings or as links."""
        return Ignored(self.log, wanted, noun, self.lists_ignored)

    def warn_of(self, ignored: Ignored) -> None:
        """Adds a warning, if files were ignored."""
        if warning := ignored.warning():
            self.warnings.append(warning)


MOST_SKIPPED_SHOWN = 100


class Expansion(Protocol):
    """Rows of a listing → columns of records. Has no state: equal rows and files give equal columns.

    Attributes:
        schema: All columns that records can have, in order; a plain schema.
    """

    schema: pa.Schema

    def sizes(self, rows: pa.RecordBatch) -> np.ndarray:
        """Returns about how many bytes each row's columns will take: int64 of shape (rows,)."""

    def null_counts(self, listed: Mapping[str, int | None]) -> dict[str, int | None]:
        """Returns the nulls of the columns of `schema`, by path, from those of the listing's; None where unknown."""

    def expand(self, rows: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        """Returns the named columns of `schema`, in its order, one row for each given row.

        Raises:
            SourceChanged: A file is gone, or its bytes are not what they were.
            SourceError: A file cannot be read or converted; the message names it.
        """


class Kind(Protocol):
    """What a module `tfr_assets.sources.<...>` of a kind offers as functions."""

    def list_rows(self, source: "Source", work: Path, found: Found) -> "Iterator[pa.RecordBatch]":
        """Yields the rows of all raw files, in a stable order, in bounded memory.

        The first batch may be empty; it has the schema. Column names are unique; those without a leading dot
        are columns of the records too, and are passed through by `expand`.

        Args:
            source: What to list.
            work: An existing folder for temporary files, which the caller removes.
            found: Filled meanwhile.

        Raises:
            SourceError: Raw data is missing or unreadable, or is not what it must be and `on_error` is `fail`.
        """

    def expansion(self, source: "Source", listing: pa.Schema, classes: Mapping[str, tuple[str, ...]]) -> Expansion:
        """Returns how rows of a listing become records.

        Args:
            source: What was listed.
            listing: Schema of the rows.
            classes: As `list_rows` found them.
        """


TABLE = "table"
_MODULES = {
    "images": "tfr_assets.sources.media.images.kind",
    "audio": "tfr_assets.sources.media.audio.kind",
    "text": "tfr_assets.sources.media.text.kind",
    "mixed": "tfr_assets.sources.mixed.kind",
}
KINDS = (TABLE, *_MODULES)


def kind_named(name: str) -> Kind:
    """Returns a kind other than `table`; imports its module."""
    module: Any = import_module(_MODULES[name])
    return module
