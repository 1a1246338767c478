"""Images in a column of Parquet or Arrow files: a row of a table is a row of the listing, and holds its image's bytes.

They are landed with the listing: rows in any order cannot be read from tables of images without reading all of it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfr_assets.errors import SourceError
from tfr_assets.sources.files.paths import find_data
from tfr_assets.sources.files.tree import root_of
from tfr_assets.sources.media.labelling import check_class
from tfr_assets.sources.media.labels import class_names, label_key
from tfr_assets.sources.media.listing import REMEDY, Medium, batch_of
from tfr_assets.sources.model.ignored import links_warning
from tfr_assets.sources.model.kinds import BYTES, CLASS, FILE, KEY, SPLIT, SPLIT_BY, TABLE, BadFileError, Found
from tfr_assets.sources.model.label_options import LabelOptions
from tfr_assets.sources.tables.arrow_files import describe, is_in_place, read_file
from tfr_assets.storage.raw_files import RawFile

if TYPE_CHECKING:
    from tfr_assets.sources.model.source import Source

CONTENT = ".content"
_BYTES_FIELD = "bytes"
_ROWS = 1024  # of a batch; fewer, where they are large
_COLUMNS = (
    *((FILE, pa.string()), (KEY, pa.string()), (SPLIT, pa.string()), (CLASS, pa.string())),
    *((BYTES, pa.int64()), (CONTENT, pa.large_binary())),
)


def list_tables(
    source: "Source", column: str, labels: LabelOptions, skip: bool, medium: Medium, found: Found
) -> Iterator[pa.RecordBatch]:
    """Yields one row per table's row, in order of the files' names and rows.

    Columns: .file (`PATH#ROW`), .key (the same), .split .class .bytes .content, the medium's facts, and where splits
    are not by folder, .split_by.

    Args:
        source: What to list: Parquet or Arrow files.
        column: Holds the images' bytes, or structs with a field `bytes`, as Hugging Face writes them.
        labels: `none` or `column`.
        skip: Whether bad rows are left out rather than an error.
        medium: What to look for in images.
        found: Filled meanwhile; an image counts as a file.

    Raises:
        SourceError: There are no such files or columns, or an image is bad and `skip` is False.
    """
    assert source.path
    hashed = source.splits is not None and not source.splits.folder
    split_by = (source.splits.column or source.splits.key) if source.splits else None
    split_fields = [pa.field(SPLIT_BY, pa.large_binary())] if hashed else []
    schema = pa.schema([*(pa.field(*each) for each in _COLUMNS), *medium.facts, *split_fields])
    yield batch_of([], schema)
    root = root_of(source.path, source.storage_options)
    wanted = list(dict.fromkeys(name for name in (column, labels.label, split_by) if name))
    tables = [(file, _groups_of(file, column, wanted)) for file in _files(source, found)]
    total, done = sum(sum(groups) for _, groups in tables), 0
    classes: set[str] = set()
    for file, groups in tables:
        name = file.path.removeprefix(root).lstrip("/")
        split = _split_of(name, source)
        first = 0
        for batch in read_file(file, groups, 0, sum(groups), wanted, _ROWS):
            rows = []
            keys = _texts(batch, split_by)
            for row, (content, label) in enumerate(_images(batch, column, labels), first):
                try:
                    facts = _look(content, label, labels, medium)
                except BadFileError as error:
                    if not skip:
                        raise SourceError(f"{file.path}: row {row}: {error}. {REMEDY}") from error
                    found.skip(f"{name}#{row}", str(error))
                    continue
                key = [keys[row - first] if split_by else hashlib.sha256(content).digest()] if hashed else []
                rows.append((f"{name}#{row}", f"{name}#{row}", split, label, len(content), content, *facts, *key))
                classes.update([label] if label is not None else [])
                found.bytes += len(content)
            first += batch.num_rows
            done += batch.num_rows
            found.files += len(rows)
            found.progress(done, total)
            yield batch_of(rows, schema)
    if classes:
        found.classes[label_key(medium.prefix)] = class_names(classes, labels)


def _files(source: "Source", found: Found) -> list[RawFile]:
    data = find_data(replace(source, kind=TABLE, options={}))
    found.warnings += filter(None, [links_warning(len(data.links))])
    files = data.files
    if other := [file.path for file in files if not is_in_place(file)]:
        raise SourceError(f"{other[0]}: `column` is for images in Parquet or Arrow files, which this is not.")
    return files


def _groups_of(file: RawFile, column: str, wanted: Sequence[str]) -> tuple[int, ...]:
    """Returns the rows of each row group, of a table that has the columns."""
    contents = describe(file)
    schema = contents.schema
    for name in wanted:
        if name not in schema.names:
            raise SourceError(f"{file.path}: has no column {name!r}. It has: {', '.join(schema.names)}.")
    type_ = schema.field(column).type
    if pa.types.is_struct(type_) and type_.get_field_index(_BYTES_FIELD) >= 0:
        type_ = type_.field(_BYTES_FIELD).type
    if not (pa.types.is_binary(type_) or pa.types.is_large_binary(type_)):
        raise SourceError(f"{file.path}: column {column!r} of type {type_} holds no images: these are binary.")
    return contents.groups


def _split_of(name: str, source: "Source") -> str | None:
    if not source.splits or not source.splits.folder:
        return None
    folder = name.partition("/")[0]
    if folder not in source.splits.folder:
        splits = ", ".join(source.splits.folder)
        raise SourceError(f"{source.path}/{name}: is in none of the folders that are splits ({splits}).")
    return folder


def _images(batch: pa.RecordBatch, column: str, labels: LabelOptions) -> Iterator[tuple[bytes, str | None]]:
    """Yields every row's image and label."""
    images = batch.column(column)
    if pa.types.is_struct(images.type):
        images = images.flatten()[images.type.get_field_index(_BYTES_FIELD)]
    return zip((image.as_py() or b"" for image in images), _texts(batch, labels.label), strict=True)


def _texts(batch: pa.RecordBatch, name: str | None) -> list[str | None]:
    """Returns a column's values as texts; nothing for no column."""
    if not name:
        return [None] * batch.num_rows
    try:
        return batch.column(name).cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SourceError(f"column {name!r} can name neither classes nor splits: {error}.") from error


def _look(content: bytes, label: str | None, labels: LabelOptions, medium: Medium) -> tuple[Any, ...]:
    if labels.by == "column":
        if not label:
            raise BadFileError(f"holds no label in column {labels.label!r}")
        check_class(label, labels.classes)
    return medium.look(content)
