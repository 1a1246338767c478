"""The kind `mixed`: several sources joined by key, one record a key.

    source:
      mixed:
        key: id                                  # names the feature of the key; default: key
        missing: fail                            # or skip: keys that not all parts have are left out
        parts:
          - images: photos/                      # files: the key is a file's name without folders and ending
          - {images: masks/, name: mask}         # `name` begins the names of the part's columns: mask/image/encoded
          - text: {path: captions.csv, column: caption}
          - {table: facts.parquet, key: photo}   # rows: the key is in the column `key`, here of another name

Records come in the order of the first part's rows. Keys are compared as text, and the feature of the key is text: a
table's own column of keys is not kept beside it. In CSV, columns of keys are read as text, so that "007" finds 007.jpg.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import chain, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.sources.files.tree import root_of
from tfr_assets.sources.landing.join import Part, join
from tfr_assets.sources.media.table_rows import key_texts, table_rows, take_table
from tfr_assets.sources.mixed.expansion import Mixed, expanded
from tfr_assets.sources.mixed.parts import MixedPart, MixedSource, mixed_source
from tfr_assets.sources.model.kinds import FILE, KEY, MOST_SKIPPED_SHOWN, SPLIT, TABLE, Found, kind_named
from tfr_assets.sources.model.source import Source
from tfr_assets.storage.file_names import natural

_FIELD = "source.mixed"
_MOST_NAMED = 5
_MOST_HELD = 1000  # before the first are looked for among them


def list_rows(source: Source, work: Path, found: Found) -> Iterator[pa.RecordBatch]:
    """Yields a row a key, in the order of the first part's rows. See `kinds.Kind`.

    After .file and .key, which are the key, .split and the feature of the key come the columns of the parts. Those of
    part 1 begin at `.1.file`; names that begin with a dot get the part's number in front, and others the part's name.
    """
    options = mixed_source(source)
    if source.splits and source.splits.folder and all(part.key for part in options.parts):
        raise ConfigError("splits.folder: no part of the mixed source is files, which could lie in folders.")
    paths = [part.source.path for part in options.parts]
    parts_found = [Found(found.log, found.progress, lists_ignored=paths.count(path) == 1) for path in paths]
    parts = []
    for index, part in enumerate(options.parts):
        (folder := work / f"part-{index}").mkdir()
        rows = _renamed(part, index, _listed(part, source, folder, parts_found[index]))
        first = next(rows)
        parts.append(Part(part.title, f".{index}{FILE}", first.schema, chain([first], rows)))
    # no classes are known yet, but columns of the same name are reported before all files have been read
    expanded(options, [part.schema.remove(part.schema.names.index(KEY)) for part in parts], {})
    unmatched = _Unmatched(options, found)
    for number, rows in enumerate(join(parts, work, unmatched.add)):
        if number == 0:  # all parts have been drawn and joined
            unmatched.check()
            for part, part_found in zip(options.parts, parts_found, strict=True):
                _add(part_found, part.prefix, found)
        yield _with_head(rows, options)


def expansion(source: Source, listing: pa.Schema, classes: Mapping[str, tuple[str, ...]]) -> Mixed:
    """Returns how rows of a listing become records. See `kinds.Kind`."""
    options = mixed_source(source)
    starts = [listing.names.index(f".{index}{FILE}") for index in range(len(options.parts))]
    schemas = [pa.schema(list(listing)[start:stop]) for start, stop in pairwise([*starts, len(listing)])]
    parts = expanded(options, schemas, classes)
    fields = [column.with_name(part.prefix + column.name) for part in parts for column in part.made.schema]
    return Mixed(options.key, parts, pa.schema([(options.key, pa.string()), *fields]))


def _listed(part: MixedPart, source: Source, work: Path, found: Found) -> Iterator[pa.RecordBatch]:
    if part.source.kind == TABLE:
        return _table(part, work, found)
    by_folder = source.splits is not None and source.splits.folder and not part.key
    listed = replace(part.source, splits=source.splits) if by_folder else part.source
    return kind_named(part.source.kind).list_rows(listed, work, found)


def _table(part: MixedPart, work: Path, found: Found) -> Iterator[pa.RecordBatch]:
    inventory = take_table(part.source, [part.key], work / "table", found)
    if dotted := [name for name in inventory.schema.names if name.startswith(".")]:
        raise SourceError(f"{part.title}: column {dotted[0]!r} begins with a dot, as none can here. Rename it.")
    root = root_of(part.source.path, part.source.storage_options) if part.source.path else ""
    for _, rows in table_rows(inventory, root):
        keys = key_texts(rows.column(part.key), f"{part.title}: column {part.key!r}")
        yield rows.drop_columns([part.key]).append_column(KEY, keys)


def _renamed(part: MixedPart, index: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields a part's rows under the names that the joined rows have; only `.key` stays what it is."""
    for rows in batches:
        keys = rows.column(KEY)
        if keys.null_count:
            row = rows.column(FILE)[pc.index(keys.is_null(), True).as_py()]
            raise SourceError(f"{part.title}: {row}: has no key in column {part.key!r}. Every row needs one.")
        kept = [FILE, *(name for name in rows.schema.names if name not in (FILE, KEY))]
        names = [f".{index}{name}" if name.startswith(".") else part.prefix + name for name in kept]
        yield rows.select([KEY, *kept]).rename_columns([KEY, *names])


@dataclass
class _Unmatched:
    """Keys that not all parts have."""

    options: MixedSource
    found: Found
    count: int = 0
    first: list[tuple[str, str]] = field(default_factory=list)

    def add(self, key: str, lacking: Sequence[int]) -> None:
        titles = " nor in ".join(self.options.parts[index].title for index in lacking)
        if self.options.skip:
            self.found.skip(key, f"is not in {titles}")
            return
        self.count += 1
        self.first.append((key, titles))
        if len(self.first) > _MOST_HELD:
            self._drop_last()

    def _drop_last(self) -> None:
        self.first = nsmallest(_MOST_NAMED, self.first, key=lambda missing: natural(missing[0]))

    def check(self) -> None:
        """Raises SourceError if there are such keys and they are no ones to skip."""
        if self.count:
            self._drop_last()
            examples = "; ".join(f"{key!r} is not in {titles}" for key, titles in self.first)
            more = f"; and {self.count - len(self.first)} more" if self.count > len(self.first) else ""
            raise SourceError(
                f"{_FIELD}: keys that are not in all parts: {self.count}. {examples}{more}. Complete the parts, or set "
                "`missing: skip` to go on without these keys."
            )


def _add(part: Found, prefix: str, found: Found) -> None:
    found.files += part.files
    found.bytes += part.bytes
    found.made_by += part.made_by
    found.classes |= {prefix + name: classes for name, classes in part.classes.items()}
    found.warnings += part.warnings
    found.skipped += part.skipped
    found.first_skipped += part.first_skipped[: MOST_SKIPPED_SHOWN - len(found.first_skipped)]


def _with_head(rows: pa.RecordBatch, options: MixedSource) -> pa.RecordBatch:
    """Adds the columns that belong to no single part."""
    keys = rows.column(KEY)
    head = {FILE: keys, KEY: keys}
    splits = [name for name in rows.schema.names if name.startswith(".") and name.endswith(SPLIT)]
    for name in splits:
        head.setdefault(SPLIT, rows.column(name))
        differs = pc.fill_null(pc.not_equal(head[SPLIT], rows.column(name)), False)
        if (at := pc.index(differs, True).as_py()) >= 0:
            one, other = (options.parts[int(each.split(".")[1])].title for each in (splits[0], name))
            here, there = head[SPLIT][at], rows.column(name)[at]
            raise SourceError(
                f"{_FIELD}: {keys[at].as_py()!r} lies in the folder {here} in {one}, but in {there} in {other}. "
                "A record is in one split: move one of the files."
            )
    rest = rows.drop_columns([KEY])
    return pa.record_batch(head | {options.key: keys} | dict(zip(rest.schema.names, rest.columns, strict=True)))
