"""Parquet and Arrow files, read in place by row range: only what overlaps the range, and little of it at a time."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tfr_assets.errors import SourceError
from tfr_assets.sources.tables.class_names import ClassNames, class_names, extremes_of, fitting
from tfr_assets.sources.tables.repeated import longest_in_batch, most_rows_of_parquet, rows_that_fit
from tfr_assets.sources.tables.schemas import conform, empty_batch, plain_schema, with_units
from tfr_assets.storage.git_lfs import IS_POINTER, is_pointer
from tfr_assets.storage.raw_files import RawFile, reading

BATCH_BYTES = 16 << 20  # batches and row groups are made no larger than this, if single rows allow it
UNIT_BYTES = 64 << 20
_PARQUET: Mapping[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 20, "page_checksum_verification": True}
_LONGEST_OLD_SCHEMA = 64 << 20  # bytes
NullCounts = dict[str, int | None]


class Contents(NamedTuple):
    """What a columnar file says about itself.

    Attributes:
        schema: Its plain schema.
        groups: Rows of each row group (Parquet) or record batch (Arrow).
        null_counts: By path of the leaf column (`a/b` for a field of a struct); None where unknown.
        unit_bytes: About how much has to be held in memory to read any one row: a Parquet page, or an Arrow record
            batch if it is compressed or remote.
        classes: Names of classes by column, where the file names them and all values are known to be classes.
        most_rows: Most rows that can be read at once, because of values that the file holds once and repeats.
    """

    schema: pa.Schema
    groups: tuple[int, ...]
    null_counts: NullCounts
    unit_bytes: int
    classes: ClassNames
    most_rows: int


def is_in_place(file: RawFile) -> bool:
    """Whether row ranges can be read from the file as it is. Arrow streams cannot: they have no index."""
    if file.format not in ("parquet", "arrow") or file.endings[1] or not file.seekable:
        return False
    if file.format == "parquet":
        return True
    with reading(file.path), file.open() as stream:
        return stream.read(6) == b"ARROW1"


def describe(file: RawFile, names: ClassNames | None = None) -> Contents:
    """Reads a file's schema, row counts and null counts.

    Args:
        file: A file that `is_in_place`.
        names: Names of classes by column; None: those that the file names.

    Raises:
        SourceError: It is empty, damaged, or something else than its name says.
    """
    with reading(file.path):
        return _describe_parquet(file, names) if file.format == "parquet" else _describe_arrow(file, names)


def class_names_in(file: RawFile) -> dict[str, tuple[str, ...]]:
    """Returns names of classes by column, as a Parquet or Arrow file names them; none for an Arrow stream."""
    if not is_in_place(file):
        return {}
    with reading(file.path):
        if file.format == "parquet":
            with _parquet(file) as parquet:
                return class_names(parquet.schema_arrow)
        with _arrow(file, mapped=False) as reader:
            return class_names(reader.schema)


def schema_of(file: RawFile, where: str) -> pa.Schema:
    """Returns the plain schema of a Parquet or Arrow file or Arrow stream, without looking at its rows."""
    if file.format == "parquet":
        _check_magic(file, "Parquet", head=b"PAR1", tail=b"PAR1")
        with _parquet(file) as parquet:
            return plain_schema(_original_schema(parquet), where)
    if is_in_place(file):
        with _arrow(file, mapped=False) as reader:
            return plain_schema(reader.schema, where)
    return next(read_stream(file)).schema


def leaf_paths(schema: pa.Schema) -> list[str]:
    """Returns the paths of columns that have no fields of their own: `a/b` for field b of column a."""
    return [path for path, _, _ in _leaves(schema)]


def read_file(
    file: RawFile, groups: Sequence[int], start: int, stop: int, columns: Sequence[str] | None, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yields the rows [start, stop) of one file in order, in batches of at most `batch_rows` rows.

    Args:
        file: A file that `is_in_place`.
        groups: As `describe` gave them.
        start: First row.
        stop: Row after the last one.
        columns: Names of top-level columns; None: all.
        batch_rows: Most rows of a batch; fewer, where rows are so large that it would exceed 16 MB.
    """
    first, before = 0, 0
    overlapping: list[int] = []
    for index, rows in enumerate(groups):
        if before < stop and start < before + rows:
            first = first if overlapping else before
            overlapping.append(index)
        before += rows
    if not overlapping:
        return
    with reading(file.path):
        at = first
        if file.format == "parquet":
            batches = _read_parquet(file, overlapping, columns, batch_rows)
        else:
            batches = _read_arrow(file, groups, overlapping, columns)
        for batch in batches:
            low, high = max(start - at, 0), min(stop - at, batch.num_rows)
            at += batch.num_rows
            if low < high:
                yield from _slices(batch.slice(low, high - low), batch_rows)
            if at >= stop:
                break


def read_stream(file: RawFile) -> Iterator[pa.RecordBatch]:
    """Yields the batches of an Arrow stream; the first one has no rows, only the schema."""
    with reading(file.path):
        with file.stream() as stream:
            begin = stream.read(16)
        if not begin:
            raise SourceError(f"{file.path}: is empty (0 bytes). Get it again.")
        if not begin.startswith(b"\xff\xff\xff\xff") and not _is_old_stream(begin):
            raise SourceError(f"{file.path}: is not Arrow: it begins with {begin!r}.{guess(begin)}")
        with file.stream() as stream, pa.ipc.open_stream(stream) as reader:
            yield empty_batch(plain_schema(reader.schema, file.path), file.path)
            for batch in reader:
                rows = rows_that_fit(longest_in_batch(batch))
                yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _is_old_stream(begin: bytes) -> bool:
    """Whether these bytes begin a stream as Arrow before 0.15 wrote it: without a mark, with a length first."""
    length, root = int.from_bytes(begin[:4], "little"), int.from_bytes(begin[4:8], "little")
    return length % 8 == 4 and length < _LONGEST_OLD_SCHEMA and 0 < root < length


def _slices(batch: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Cuts a batch into ones of at most `batch_rows` rows and, if rows allow it, 16 MB."""
    rows = fitting_rows(batch.nbytes, batch.num_rows, batch_rows)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def fitting_rows(size: int, rows: int, most: int) -> int:
    """Returns how many rows make a batch of 16 MB at most, if `rows` of them take `size` bytes."""
    return max(1, min(most, BATCH_BYTES * max(rows, 1) // max(size, 1)))


@contextmanager
def _parquet(file: RawFile) -> Iterator[pq.ParquetFile]:
    # Without pre-buffering, columns are read through small buffers instead of whole row groups at once.
    with _open(file) as opened, pq.ParquetFile(opened, **_PARQUET) as parquet:
        yield parquet


@contextmanager
def _open(file: RawFile) -> Iterator[str | BinaryIO]:
    """Yields what `pq.ParquetFile` opens: a local file's path, or the bytes of a remote one."""
    if file.is_local:
        yield file.path
        return
    with file.open() as stream:
        yield stream


def _describe_parquet(file: RawFile, names: ClassNames | None) -> Contents:
    _check_magic(file, "Parquet", head=b"PAR1", tail=b"PAR1")
    with _parquet(file) as parquet:
        meta = parquet.metadata
        schema = plain_schema(_original_schema(parquet), file.path)
        groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
        rows = tuple(group.num_rows for group in groups)
        counts = {
            path: sum(rows) if pa.types.is_null(type_) else _null_count(groups, column)
            for path, type_, column in _leaves(schema)
        }
        names = class_names(parquet.schema_arrow) if names is None else names
        extremes = {path: _extremes(groups, column) for path, _, column in _leaves(schema) if path in names}
        page = max(map(_page_bytes, groups), default=0)
        most_rows = most_rows_of_parquet(_open(file), meta, **_PARQUET)
        return Contents(schema, rows, counts, page, fitting(names, extremes), most_rows)


def _original_schema(parquet: pq.ParquetFile) -> pa.Schema:
    """Returns the schema that a file was made of.

    Parquet counts no seconds and no days in milliseconds: it holds milliseconds and days in place of them. Arrow writes
    its own schema beside, which has the units of the data.
    """
    schema = parquet.schema_arrow
    stored = (parquet.metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return schema
    given = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
    if given.names != schema.names:
        return schema
    types = [with_units(*types) for types in zip(schema.types, given.types, strict=True)]
    return pa.schema(list(zip(schema.names, types, strict=True)))


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType, int | None]]:
    """Yields each leaf column's path, type and index in Parquet; None for lists and maps, whose nulls are unknown."""
    index = 0
    stack = [(field.name, field.type) for field in reversed(schema)]
    while stack:
        path, type_ = stack.pop()
        if pa.types.is_struct(type_):
            stack.extend((f"{path}/{child.name}", child.type) for child in reversed(list(type_)))
            continue
        yield path, type_, None if pa.types.is_nested(type_) else index
        index += _physical_leaves(type_)


def _physical_leaves(type_: pa.DataType) -> int:
    if not pa.types.is_nested(type_):
        return 1
    return sum(_physical_leaves(type_.field(index).type) for index in range(type_.num_fields))


def _null_count(groups: Sequence[Any], column: int | None) -> int | None:
    if column is None:
        return None
    stats = [group.column(column).statistics for group in groups]
    if not all(s is not None and s.has_null_count for s in stats):
        return None
    return sum(int(s.null_count) for s in stats)


def _extremes(groups: Sequence[Any], column: int | None) -> tuple[int, int] | None:
    """Returns the smallest and the largest value of a column of integers, as `classes.fitting` takes them."""
    least, most = [], []
    for group in (group for group in groups if group.num_rows):
        stats = None if column is None else group.column(column).statistics
        if stats is None or not (stats.has_min_max or (stats.has_null_count and not stats.num_values)):
            return None
        if stats.has_min_max:
            least.append(stats.min)
            most.append(stats.max)
    return (min(least, default=0), max(most, default=0)) if all(type(n) is int for n in least) else None


def _page_bytes(group: Any) -> int:
    """Returns how large a page of a row group may be: writers look at its size only every 1024 values."""
    chunks = (group.column(index) for index in range(group.num_columns))
    sizes = ((chunk.total_uncompressed_size, max(chunk.num_values, 1)) for chunk in chunks)
    return max((min(size, max(1 << 20, size * 1024 // values)) for size, values in sizes), default=0)


def _read_parquet(
    file: RawFile, groups: list[int], columns: Sequence[str] | None, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    with _parquet(file) as parquet:
        meta = [parquet.metadata.row_group(index) for index in groups]
        size = sum(group.total_byte_size for group in meta)
        batch_rows = fitting_rows(size, sum(group.num_rows for group in meta), batch_rows)
        yield from parquet.iter_batches(batch_rows, row_groups=groups, columns=columns, use_threads=False)


@contextmanager
def _arrow(
    file: RawFile, columns: Sequence[str] | None = None, mapped: bool = True
) -> Iterator[pa.RecordBatchFileReader]:
    with ExitStack() as stack:
        local = pa.memory_map if mapped else pa.OSFile
        opened = stack.enter_context(local(file.path) if file.is_local else file.open())
        options = None
        if columns is not None:
            places = {name: at for at, name in enumerate(pa.ipc.open_file(opened).schema.names)}
            options = pa.ipc.IpcReadOptions(included_fields=[places[name] for name in columns if name in places])
        yield stack.enter_context(pa.ipc.open_file(opened, options=options))


def _describe_arrow(file: RawFile, names: ClassNames | None) -> Contents:
    _check_magic(file, "Arrow", head=b"ARROW1", tail=b"ARROW1")
    with _arrow(file) as reader:
        schema = plain_schema(reader.schema, file.path)
        groups: list[int] = []
        names = class_names(reader.schema) if names is None else names
        extremes: dict[str, tuple[int, int] | None] = dict.fromkeys(names, (0, 0))
        counts: NullCounts = {path: None if column is None else 0 for path, _, column in _leaves(schema)}
        unit = longest = 0
        for index in range(reader.num_record_batches):
            before = pa.total_allocated_bytes()
            batch = reader.get_batch(index)
            groups.append(batch.num_rows)
            unit = max(unit, pa.total_allocated_bytes() - before if file.is_local else batch.nbytes)
            longest = max(longest, longest_in_batch(batch))
            for start in range(0, batch.num_rows, rows_that_fit(longest)):
                plain = conform(batch.slice(start, rows_that_fit(longest)), schema)
                _count_nulls(plain, counts)
                extremes = {name: extremes_of(plain.column(name), extremes[name]) for name in names}
                del plain
            del batch  # before the next one is measured
        return Contents(schema, tuple(groups), counts, unit, fitting(names, extremes), rows_that_fit(longest))


def _count_nulls(batch: pa.RecordBatch, counts: NullCounts) -> None:
    for path, array in _leaf_arrays(batch):
        if (count := counts[path]) is not None:
            counts[path] = count + array.null_count


def _leaf_arrays(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    stack: list[tuple[str, pa.Array]] = list(zip(batch.schema.names, batch.columns, strict=True))
    while stack:
        path, array = stack.pop()
        if pa.types.is_struct(array.type):
            names = [field.name for field in array.type]
            stack.extend((f"{path}/{name}", child) for name, child in zip(names, array.flatten(), strict=True))
        else:
            yield path, array


def _read_arrow(
    file: RawFile, groups: Sequence[int], overlapping: Sequence[int], columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    # A memory map lets a range of one huge batch be read without the rest of it. Otherwise a plain file is better:
    # a process that has mapped a file is killed if somebody cuts it short.
    size, _ = file.info()
    mapped = size * max(groups) // sum(groups) > UNIT_BYTES
    with _arrow(file, columns, mapped) as reader:
        for index in overlapping:
            yield reader.get_batch(index)


def _check_magic(file: RawFile, kind: str, head: bytes, tail: bytes) -> None:
    size, _ = file.info()
    if size == 0:
        raise SourceError(f"{file.path}: is empty (0 bytes). Get it again.")
    with file.open() as stream:
        begin = stream.read(16)
        stream.seek(max(0, size - len(tail)))
        end = stream.read()
    if not begin.startswith(head):
        raise SourceError(f"{file.path}: is not {kind}: it begins with {begin!r}.{guess(begin)}")
    if end != tail or size < len(head) + len(tail):
        raise SourceError(f"{file.path}: is cut short: it begins as {kind} but does not end as such. Get it again.")


def guess(begin: bytes) -> str:
    """Returns a sentence that says what a file with these first bytes probably is, or nothing."""
    known: Mapping[bytes, str] = {
        b"PAR1": "Parquet",
        b"ARROW1": "Arrow",
        b"FEA1": "Feather version 1: write it again with a current pyarrow",
        b"\x1f\x8b": "gzip: its name should end in .gz",
        b"BZh": "bzip2: its name should end in .bz2",
        b"\xfd7zXZ": "xz: its name should end in .xz",
        b"\x28\xb5\x2f\xfd": "Zstandard: its name should end in .zst",
        b"PK\x03\x04": "a zip or an Excel workbook",
        b"%PDF": "PDF",
        b"SQLite format": "an SQLite database",
    }
    if is_pointer(begin):
        return f" It {IS_POINTER}."
    start = begin.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<!--")):
        return " This looks like a web page (HTML or XML), perhaps an error page saved in place of the data."
    for magic, name in known.items():
        if begin.startswith(magic):
            return f" This looks like {name}."
    return ""
