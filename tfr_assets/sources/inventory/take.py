"""Taking the inventory: every raw file is hashed, and landed if rows cannot be read from it by range."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import pyarrow as pa

from tfr_assets.errors import ConfigError, SourceChanged, SourceError
from tfr_assets.sources.files.paths import DataFiles, find_data, first_folder
from tfr_assets.sources.inventory.content_hash import RowsHash
from tfr_assets.sources.inventory.inventory import Inventory
from tfr_assets.sources.landing.landed import (
    Landed,
    SourceFile,
    find_landed,
    finish,
    remove_landings,
    temporary_folder,
    write_parts,
)
from tfr_assets.sources.landing.shuffle import shuffle
from tfr_assets.sources.model.ignored import Ignored
from tfr_assets.sources.model.kinds import SPLIT, SPLIT_BY, TABLE, Found, kind_named
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.splits import ONLY_SPLIT, assign_splits
from tfr_assets.sources.model.table_options import UNION, unfit_option
from tfr_assets.sources.tables.arrow_files import (
    UNIT_BYTES,
    Contents,
    class_names_in,
    describe,
    is_in_place,
    leaf_paths,
    read_file,
    read_stream,
    schema_of,
)
from tfr_assets.sources.tables.callables import callable_batches
from tfr_assets.sources.tables.class_names import ClassNames, common
from tfr_assets.sources.tables.csv_files import CsvReader
from tfr_assets.sources.tables.dict_rows import ShapesVaryError
from tfr_assets.sources.tables.json_lines import JsonReader
from tfr_assets.sources.tables.python_values import Form
from tfr_assets.sources.tables.schemas import TypesTooNarrowError, common_schema, conform, empty_batch, plain_schema
from tfr_assets.storage.atomic import move, refusals, remove, write_atomically
from tfr_assets.storage.file_names import ENDINGS, is_remote
from tfr_assets.storage.raw_files import FileBatches, RawFile, reading
from tfr_assets.units import Progress

Check = Callable[[pa.Schema], object]
_READING = "3"  # part of every fingerprint: raise it when the same bytes come to be read as other rows
_COPY_BYTES = 1 << 20
_COPY = "copy"
SKIPPED = "skipped.tsv"


def take_inventory(
    source: Source, landing: Path, progress: Progress | None = None, check: Check | None = None
) -> Inventory:
    """Looks at all raw data, and lands it where rows cannot be read from it by range.

    Parquet and Arrow files stay where they are, unless single pages or compressed batches of them are larger than 64 MB
    or they come from a web server that cannot send parts. Everything else is written to `landing` as Parquet, unless it
    is there from an earlier time; a callable is called every time.

    Args:
        source: What to look at.
        landing: Folder for landed files; it is made if needed.
        progress: Called with (bytes read, of bytes) while files are hashed, then (rows landed, None) while they are
            landed.
        check: Called with the schema of Parquet and Arrow files before their rows are landed, which may take long and
            much memory. What it raises ends the inventory.

    Raises:
        ConfigError: The source has no such option, or its options do not fit together.
        SourceError: Raw data is missing, unreadable or not what its name says; SourceChanged, if it changes meanwhile.
        WriteError: It cannot be landed.
    """
    report = progress or (lambda done, total: None)
    landing = landing.absolute()
    if source.kind != TABLE:
        return _of_listing(source, landing, report)
    if source.callable:
        return _of_callable(source, landing, report)
    return _of_files(source, landing, report, check or (lambda schema: None))


def remove_old_landings(inventory: Inventory, landing: Path) -> None:
    """Removes what was landed for other inventories; to be called when this one is saved."""
    remove_landings(landing.absolute(), inventory.landed)


class _Hashed:
    """Batches on their way; what was drawn is hashed."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self._hash = batches, cast(RowsHash, None)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self._hash = self._hash or RowsHash(batch.schema)
            self._hash.update(batch)
            yield batch

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def _of_callable(source: Source, landing: Path, progress: Progress) -> Inventory:
    assert source.callable
    forms: dict[str, Form] = {}
    while True:
        with temporary_folder(landing) as folder:
            rows = _Hashed(callable_batches(source.callable, forms))
            try:
                landed = _land(iter(rows), source, folder, progress)
            except ShapesVaryError as error:
                if forms.get(error.column) == error.form:
                    raise
                forms[error.column] = error.form
                continue
            fingerprint = _fingerprint(source, "rows", [rows.hexdigest()])
            landed = finish(folder, landing, fingerprint, landed)
            return _inventory(source, (), landed, fingerprint)


def _of_listing(source: Source, landing: Path, progress: Progress) -> Inventory:
    """Takes the inventory of files that are no tables: their listing is landed, their bytes stay where they are."""
    _refuse_own_output(source, landing)
    kind = kind_named(source.kind)
    skipped = landing / SKIPPED
    with temporary_folder(landing) as folder:
        (work := folder / "work").mkdir()
        found = Found(folder / SKIPPED, progress)
        rows = _Hashed(kind.list_rows(source, work, found))
        landed = _land(iter(rows), source, folder, lambda done, total: None)
        shutil.rmtree(work)
        if not any(part.rows for part in landed.parts):
            raise SourceError(f"{source}: no file of it can become a record{_why(found)}.")
        _keep_log(found.log, skipped)
        classes = json.dumps(found.classes, sort_keys=True)
        fingerprint = _fingerprint(source, source.kind, [rows.hexdigest(), classes, *found.made_by])
        landed = finish(folder, landing, fingerprint, landed)
    return _of_landed_listing(source, landed, fingerprint, found)


def _why(found: Found) -> str:
    """Returns why there is no row."""
    if not found.skipped:
        return ": they are empty"
    file, reason = found.first_skipped[0]
    return f"; {found.skipped} were skipped. The first, {file}: {reason}"


def _of_landed_listing(source: Source, landed: Landed, fingerprint: str, found: Found) -> Inventory:
    taken = _inventory(source, (), landed, fingerprint)
    expansion = kind_named(source.kind).expansion(source, taken.schema, found.classes)
    return replace(
        taken,
        schema=expansion.schema,
        listing=taken.schema,
        null_counts=expansion.null_counts(taken.null_counts),
        file_count=found.files,
        bytes=found.bytes,
        classes=found.classes,
        skipped=found.skipped,
        first_skipped=tuple(found.first_skipped),
        warnings=tuple(found.warnings),
    )


def _keep_log(log: Path, kept: Path) -> None:
    """Puts the list of files that were left out in its place; there is none if all were taken."""
    if log.exists():
        move(log, kept)
    else:
        remove(kept)


def _refuse_own_output(source: Source, landing: Path) -> None:
    path = str(source.path)
    if source.path and not is_remote(path) and Path(path).expanduser().absolute() in landing.parents:
        raise ConfigError(
            f"source.path: {source.path} also holds what is made of it ({landing}). Name a folder of raw data alone."
        )


def _of_files(source: Source, landing: Path, progress: Progress, check: Check) -> Inventory:
    _refuse_own_output(source, landing)
    data = find_data(source)
    raw, format_ = data.files, data.files[0].format
    if unfit := unfit_option(format_, source.options):
        raise ConfigError(f"source.options.{unfit[0]}: {unfit[1]}.")
    files = _hash(raw, progress)
    # The ending .tsv is the only one that makes the same bytes other rows.
    hashes = [
        recorded.fingerprint + file.endings[0] * (file.endings[0] == ".tsv")
        for file, recorded in zip(raw, files, strict=True)
    ]
    fingerprint = _fingerprint(source, format_, hashes)
    inventory = None
    if source.shuffle_seed is None and source.splits is None and all(map(is_in_place, raw)):
        inventory = _in_place(source, raw, files, fingerprint)
    if inventory is None:
        landed = find_landed(landing, fingerprint, len(raw))
        if landed is None:
            landed = _land_files(source, raw, files, landing, fingerprint, progress, check)
        files = [replace(file, rows=rows) for file, rows in zip(files, landed.raw_rows, strict=True)]
        names = common(map(class_names_in, raw)) if format_ in ("parquet", "arrow") else {}
        inventory = _inventory(source, files, landed, fingerprint, names)
    _check_unchanged(raw, files)
    warnings = [_warn_of_ignored(data, landing), _warn_of_header(inventory)]
    return replace(inventory, warnings=tuple(filter(None, warnings)))


def _warn_of_header(inventory: Inventory) -> str:
    """Returns what to say of CSV whose first row looks like data, or nothing."""
    names, file = inventory.schema.names, inventory.files[0]
    if file.format != "csv" or inventory.source.options.get("column_names") or not all(map(_is_number, names)):
        return ""
    return (
        f"{file.path}: the first row, which names the columns, holds only numbers: {', '.join(names):.80}. "
        "If it is data, name the columns by `options: {column_names: […]}`; otherwise this row of each file is lost."
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _warn_of_ignored(data: DataFiles, landing: Path) -> str:
    """Lists what is left out of a folder, and returns what to say of it."""
    ignored = Ignored(None, ENDINGS, "a table")
    lines = [line for file in data.ignored if (line := ignored.add(file))]
    lines += [ignored.add_link(link) for link in data.links]
    warning = ignored.warning()
    if not warning:
        remove(landing / SKIPPED)
        return ""
    landing.mkdir(parents=True, exist_ok=True)
    write_atomically(landing / SKIPPED, "".join(lines).encode())
    return warning


def _check_unchanged(raw: Sequence[RawFile], files: Sequence[SourceFile]) -> None:
    for file, recorded in zip(raw, files, strict=True):
        with reading(file.path):
            if file.info()[1] != recorded.signature:
                raise SourceChanged(f"{file.path}: changed while it was read. Materialize raw again.")


def _hash(raw: Sequence[RawFile], progress: Progress) -> list[SourceFile]:
    infos = []
    for file in raw:
        try:
            infos.append(file.info())
        except FileNotFoundError as error:
            raise SourceError(f"{file.path}: there is no such file.") from error
        except OSError as error:
            raise SourceError(f"{file.path}: cannot be read: {error.strerror or error}.") from error
    total, done = sum(size for size, _ in infos), 0
    files = []
    for file, (size, signature) in zip(raw, infos, strict=True):

        def read(size: int) -> None:
            nonlocal done
            done += size
            progress(done, max(done, total))

        files.append(SourceFile(file.path, file.format, 0, size, file.content_hash(read), signature))
    return files


def _fingerprint(source: Source, kind: str, hashes: Sequence[str]) -> str:
    options = json.dumps({key: value for key, value in source.options.items() if value is not None}, sort_keys=True)
    splits = source.splits and asdict(source.splits)
    said = json.dumps([_READING, kind, options, source.columns, source.shuffle_seed, splits, *hashes])
    return hashlib.sha256(said.encode()).hexdigest()


def _in_place(
    source: Source, raw: Sequence[RawFile], files: Sequence[SourceFile], fingerprint: str
) -> Inventory | None:
    """Returns the inventory of files that are read where they are; None if that would take too much memory."""
    found: list[SourceFile] = []
    contents: list[Contents] = []
    for file, recorded in zip(raw, files, strict=True):
        contents.append(describe(file))
        groups, most_rows = contents[-1].groups, contents[-1].most_rows
        found.append(replace(recorded, rows=sum(groups), groups=groups, most_rows=most_rows))
        if contents[-1].unit_bytes > UNIT_BYTES:
            return None
    schemas = [(each.schema, file.path) for each, file in zip(contents, raw, strict=True)]
    schema = common_schema(schemas, source.columns == UNION)
    rows = sum(file.rows for file in found)
    return Inventory(
        source=source,
        files=tuple(found),
        landed=(),
        file_count=len(found),
        rows=rows,
        splits={ONLY_SPLIT: rows},
        bytes=sum(file.bytes for file in found),
        schema=schema,
        null_counts=_null_counts(contents, schema),
        fingerprint=fingerprint,
        classes=common(each.classes for each in contents),
    )


def _inventory(
    source: Source, files: Sequence[SourceFile], landed: Landed, fingerprint: str, names: ClassNames | None = None
) -> Inventory:
    contents = [describe(RawFile(part.path, "parquet"), names) for part in landed.parts]
    rows = sum(part.rows for part in landed.parts)
    return Inventory(
        source=source,
        files=tuple(files),
        landed=landed.parts,
        file_count=len(files),
        rows=rows,
        splits=landed.splits or {ONLY_SPLIT: rows},
        bytes=sum(file.bytes for file in files or landed.parts),
        schema=contents[0].schema,
        null_counts=_null_counts(contents, contents[0].schema),
        fingerprint=fingerprint,
        classes=common(each.classes for each in contents),
    )


def _null_counts(contents: Sequence[Contents], schema: pa.Schema) -> dict[str, int | None]:
    """Returns the nulls of all files together; None where they are unknown in one."""
    total: dict[str, int | None] = {}
    names = set(schema.names)
    for path in leaf_paths(schema):
        total[path] = 0
        for each in contents:
            count = each.null_counts.get(path)
            if path in names and path not in each.null_counts:
                count = sum(each.groups)  # the column is not there, or holds structs elsewhere
            before = total[path]
            total[path] = None if count is None or before is None else before + count
    return total


class _Reader(Protocol):
    def infer(self, files: Sequence[RawFile]) -> dict[str, pa.DataType]: ...

    def batches(self, files: Sequence[RawFile], types: Mapping[str, pa.DataType] | None) -> FileBatches: ...


def _land_files(
    source: Source,
    raw: Sequence[RawFile],
    files: Sequence[SourceFile],
    landing: Path,
    fingerprint: str,
    progress: Progress,
    check: Check,
) -> Landed:
    """Lands files. Text is read with the types that its beginning suggests, and once more if these are too narrow."""
    readers: dict[str, _Reader] = {
        "csv": CsvReader(source.options, source.columns == UNION),
        "jsonl": JsonReader(source.options),
    }
    reader = readers.get(raw[0].format)
    types: Mapping[str, pa.DataType] | None = None
    while True:
        with temporary_folder(landing) as folder:
            batches = (
                reader.batches(raw, types) if reader else _columnar_batches(raw, folder, source.columns == UNION, check)
            )
            rows = [0] * len(raw)
            named = _with_folder(batches, source, raw) if source.splits and source.splits.folder else batches
            try:
                landed = _land(_counted(named, rows), source, folder, progress)
            except TypesTooNarrowError:
                assert reader and types is None
                types = reader.infer(raw)
                continue
            _check_unchanged(raw, files)  # before these rows get the name of what was hashed
            return finish(folder, landing, fingerprint, replace(landed, raw_rows=tuple(rows)))


def _with_folder(batches: FileBatches, source: Source, raw: Sequence[RawFile]) -> FileBatches:
    """Adds the column that tells each row's folder: the first one below the source's path."""
    folders = [first_folder(str(source.path), file.path) for file in raw]
    for index, batch in batches:
        names = pa.array([folders[index]] * batch.num_rows, pa.string())
        yield index, batch.append_column(SPLIT, names)


def _counted(batches: FileBatches, rows: list[int]) -> Iterator[pa.RecordBatch]:
    for index, batch in batches:
        rows[index] += batch.num_rows
        yield batch


def _land(batches: Iterator[pa.RecordBatch], source: Source, folder: Path, progress: Progress) -> Landed:
    """Writes rows into a temporary folder, split by split and shuffled within these, if the source asks for it."""
    done = 0

    def wrote(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done, None)

    counts: dict[str, int] = {}
    (spool := folder / "spool").mkdir()  # goes with its folder where anything fails
    rows = _split(batches, source, spool, counts) if source.splits else _shuffled(batches, source, spool)
    parts = write_parts(rows, folder, str(source), wrote)
    with refusals(spool):  # what stayed would be part of the landing
        shutil.rmtree(spool)
    return Landed(parts, (), counts or None)


def _split(
    batches: Iterator[pa.RecordBatch], source: Source, spool: Path, counts: dict[str, int]
) -> Iterator[pa.RecordBatch]:
    assert source.splits
    by_folder = source.kind == TABLE and source.splits.folder
    for name, count, rows in assign_splits(batches, source.splits, spool, str(source)):
        counts[name] = count
        yield from _shuffled(_without(rows, SPLIT if by_folder else SPLIT_BY), source, spool)


def _without(batches: Iterator[pa.RecordBatch], column: str) -> Iterator[pa.RecordBatch]:
    """Yields the rows without the column that named their splits, if there is one."""
    for batch in batches:
        yield batch.drop_columns([column]) if column in batch.schema.names else batch


def _shuffled(batches: Iterator[pa.RecordBatch], source: Source, spool: Path) -> Iterator[pa.RecordBatch]:
    return batches if source.shuffle_seed is None else shuffle(batches, source.shuffle_seed, spool)


def _columnar_batches(raw: Sequence[RawFile], folder: Path, union: bool, check: Check) -> FileBatches:
    """Yields the rows of Parquet and Arrow files and Arrow streams in order, each batch with its file's number."""
    schema = None
    if len(raw) > 1:
        schemas = []
        for file in raw:
            with _seekable(file, folder) as readable, reading(file.path):
                schemas.append((schema_of(readable, file.path), file.path))
        schema = common_schema(schemas, union)
        check(schema)
    for index, file in enumerate(raw):
        with _seekable(file, folder) as readable:
            contents = describe(readable) if is_in_place(readable) else None
            batches: Iterator[pa.RecordBatch]
            if contents:
                rows = read_file(readable, contents.groups, 0, sum(contents.groups), None, contents.most_rows)
                batches = chain([empty_batch(contents.schema, file.path)], rows)
            else:
                batches = read_stream(readable)
            for batch in batches:
                if schema is None:
                    schema = contents.schema if contents else plain_schema(batch.schema, file.path)
                    check(schema)
                yield index, conform(batch, schema)


@contextmanager
def _seekable(file: RawFile, folder: Path) -> Iterator[RawFile]:
    """Gives a file that can be read by range: a decompressed copy, if it cannot itself."""
    if file.seekable and not file.endings[1]:
        yield file
        return
    try:
        yield replace(file, path=str(_copy(file, folder)))
    finally:
        (folder / _COPY).unlink(missing_ok=True)


def _copy(file: RawFile, folder: Path) -> Path:
    """Copies a file that cannot be read by range, decompressed, to the temporary folder."""
    copy = folder / _COPY
    with copy.open("wb") as out:
        for _, text in file.texts():
            while piece := _read_piece(file, text):
                out.write(piece)
    return copy


def _read_piece(file: RawFile, text: BinaryIO) -> bytes:
    with reading(file.path):
        return text.read(_COPY_BYTES)
