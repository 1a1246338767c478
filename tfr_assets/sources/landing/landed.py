"""Landing: rows that cannot be read by range where they are, written once as Parquet.

A landing is a folder `landed-FINGERPRINT` with files `part-00000.parquet`, … and `landing.json`, which tells their
hashes. It is written under a temporary name and renamed when all of it is on disk, and it is never changed after that,
so a running reader of an older landing is not disturbed.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tfr_assets.errors import SourceError, TfrError, WriteError
from tfr_assets.sources.tables.arrow_files import BATCH_BYTES, describe
from tfr_assets.sources.tables.repeated import MOST_ROWS
from tfr_assets.storage.atomic import make_folder, sync_folder
from tfr_assets.storage.locks import make_locked_folder, remove_abandoned_folders, remove_locked_folder
from tfr_assets.storage.mirror import bring, naming_folder, remove_folder
from tfr_assets.storage.raw_files import RawFile
from tfr_assets.storage.sealed import seal, unseal

_DICTIONARY = 64 << 10  # bytes of a row group's different values; a column that has more is stored as it is
_GROUP_ROWS = 16_384
_PART_GROUPS = 512  # bounds the footer that each reader of a part has to parse
_TEMPORARY, _RECORD = ".landing-", "landing.json"


@dataclass(frozen=True)
class SourceFile:
    """A file as it was when the inventory was taken.

    Attributes:
        path: Absolute path or URL.
        format: How it is read.
        rows: Number of rows.
        bytes: Size of the file.
        fingerprint: SHA-256 of its content.
        signature: What shows a change without reading it: size, times, inode or entity tag.
        groups: Rows of each row group or record batch, where rows can be read from it by range; otherwise empty.
        most_rows: Most rows that can be read at once.
    """

    path: str
    format: str
    rows: int
    bytes: int
    fingerprint: str
    signature: str
    groups: tuple[int, ...] = ()
    most_rows: int = MOST_ROWS

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "SourceFile":
        """Returns the file that `dataclasses.asdict` gave.

        Raises:
            TypeError: It gave something else; KeyError as well.
        """
        file = cls(**{**values, "groups": tuple(values["groups"])})
        texts = (file.path, file.format, file.fingerprint, file.signature)
        counts = (file.rows, file.bytes, file.most_rows, *file.groups)
        if not all(isinstance(text, str) for text in texts) or not all(map(is_count, counts)) or not file.most_rows:
            raise TypeError(values)
        return file


def is_count(value: object) -> bool:
    """Whether a value of JSON is a number of something."""
    return type(value) is int and 0 <= value < 2**63


@dataclass(frozen=True)
class Landed:
    """What lies in a landing.

    Attributes:
        parts: The Parquet files, in the order of their rows.
        raw_rows: Rows that each raw file gave; empty where no table's file did.
        splits: Rows of each split, in their order; None: there are no splits.
    """

    parts: tuple[SourceFile, ...]
    raw_rows: tuple[int, ...]
    splits: dict[str, int] | None = None


def folder_of(landing: Path, fingerprint: str) -> Path:
    """Returns the folder for what was made of data with this fingerprint."""
    return landing / f"landed-{fingerprint[:24]}"


def find_landed(landing: Path, fingerprint: str, raw_files: int = 0) -> Landed | None:
    """Returns what was landed earlier for this fingerprint, or None if it is not there or not whole.

    Args:
        landing: Folder of all landings.
        fingerprint: Of the data that was landed.
        raw_files: Number of table's files that it came from.
    """
    folder = folder_of(landing, fingerprint)
    try:
        record = unseal((folder / _RECORD).read_bytes()) or {}
        parts = [SourceFile.from_json(part) for part in record.pop("parts")]
        landed = Landed(tuple(_landed_part(folder, part) for part in parts), tuple(record.pop("raw_rows")), **record)
        return landed if _adds_up(landed, raw_files) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SourceError):
        return None


def _adds_up(landed: Landed, raw_files: int) -> bool:
    """Whether raw files, splits and parts hold the same rows."""
    rows = sum(part.rows for part in landed.parts)
    splits = {"all": rows} if landed.splits is None else landed.splits
    if len(landed.raw_rows) != raw_files or not all(map(is_count, (*landed.raw_rows, *splits.values()))):
        return False
    return sum(splits.values()) == rows and (not raw_files or sum(landed.raw_rows) == rows)


def _landed_part(folder: Path, recorded: SourceFile) -> SourceFile:
    """Returns a part of a landing; raises ValueError where it is not what is there."""
    bring(folder / Path(recorded.path).name)
    file = RawFile(str(folder / Path(recorded.path).name), "parquet")
    size, signature = file.info()
    groups = describe(file).groups
    part = SourceFile(file.path, "parquet", sum(groups), size, file.content_hash(), signature, groups)
    if replace(recorded, path=file.path, signature=signature) != part:
        raise ValueError(recorded)
    return part


def landing_problem(part: SourceFile) -> str | None:
    """Returns what is wrong with a landed file: it is read as a whole, and compared with its fingerprint."""
    try:
        changed = RawFile(part.path, "parquet").content_hash() != part.fingerprint
    except (OSError, SourceError):
        return "it is missing or cannot be read"
    return "it is not what was landed" if changed else None


def _temporary(landing: Path) -> Path:
    return landing / f"{_TEMPORARY}{uuid4().hex}"


@contextmanager
def temporary_folder(landing: Path) -> Iterator[Path]:
    """Makes a folder beside the landings, locked while this process lives, and removes it whatever happens."""
    try:
        make_folder(landing)
        descriptor, folder = make_locked_folder(landing, _TEMPORARY, mode=0o777)
    except OSError as error:
        raise WriteError(f"{landing}: cannot write there: {error.strerror}.") from error
    try:
        yield folder
    except OSError as error:  # what fails to be read is a SourceError by now
        raise WriteError(f"{landing}: cannot write there: {error}. Nothing was changed.") from error
    finally:
        remove_locked_folder(descriptor, folder)


def write_parts(
    batches: Iterator[pa.RecordBatch], folder: Path, where: str, progress: Callable[[int], None] = lambda rows: None
) -> tuple[SourceFile, ...]:
    """Writes rows as Parquet files with row groups of at most 16,384 rows and about 16 MB.

    Args:
        batches: At least one, all of one schema; they may be empty.
        folder: Where the files shall lie.
        where: What the rows are from, for messages.
        progress: Called with the rows of each row group.

    Raises:
        WriteError: The disk is full, or refuses for another reason.
        SourceError: A column is of a type that Parquet cannot hold.
    """
    groups = _groups(batches)
    parts: list[SourceFile] = []
    pending = next(groups, None)
    assert pending is not None, "a source has a schema, if only of an empty batch"
    while pending is not None:
        path = folder / f"part-{len(parts):05d}.parquet"
        counts: list[int] = []
        with _writing(path), path.open("xb") as raw:
            sink = _HashingFile(raw)
            with _checked_writer(sink, pending.schema, where) as writer:
                while pending is not None and len(counts) < _PART_GROUPS:
                    writer.write_table(pending, row_group_size=max(1, pending.num_rows))
                    progress(pending.num_rows)
                    counts.append(pending.num_rows)
                    pending = next(groups, None)
            raw.flush()
            os.fsync(raw.fileno())
            parts.append(
                SourceFile(str(path), "parquet", sum(counts), raw.tell(), sink.hash.hexdigest(), "", tuple(counts))
            )
    return tuple(parts)


def finish(temporary: Path, landing: Path, fingerprint: str, landed: Landed) -> Landed:
    """Gives a written landing its final name, or takes the whole one that is already there."""
    final = folder_of(landing, fingerprint)
    with _writing(final):
        with (temporary / _RECORD).open("xb") as file:
            parts = [asdict(replace(part, path=Path(part.path).name)) for part in landed.parts]
            file.write(seal(asdict(landed) | {"parts": parts}))
            file.flush()
            os.fsync(file.fileno())
        sync_folder(temporary)
        with naming_folder(temporary, final, last=_RECORD):
            try:
                temporary.rename(final)
            except OSError:
                if not final.exists():
                    raise
                if existing := find_landed(landing, fingerprint, len(landed.raw_rows)):
                    return existing
                broken = final.rename(_temporary(landing))
                temporary.rename(final)
                shutil.rmtree(broken, ignore_errors=True)
        sync_folder(landing)
    moved = [replace(part, path=str(final / Path(part.path).name)) for part in landed.parts]
    return replace(landed, parts=tuple(replace(p, signature=RawFile(p.path, "parquet").info()[1]) for p in moved))


def remove_landings(landing: Path, keep: Sequence[SourceFile]) -> None:
    """Removes all landings but the one that holds `keep`, and what killed processes left behind."""
    if not landing.is_dir():
        return
    kept = {Path(part.path).parent for part in keep}
    for folder in landing.glob("landed-*"):
        if folder.absolute() not in kept:
            remove_folder(folder)
    remove_abandoned_folders(landing, _TEMPORARY)


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Cuts rows into row groups; the first batch is the first row group's schema even if it has no rows."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    yielded = False
    schema: pa.Schema | None = None
    for batch in batches:
        schema = schema or batch.schema
        while batch.num_rows:
            per_row = max(1, batch.nbytes // batch.num_rows)
            take = min(batch.num_rows, _GROUP_ROWS - rows, max(1, (BATCH_BYTES - size) // per_row))
            pending.append(batch.slice(0, take))
            rows, size = rows + take, size + take * per_row
            batch = batch.slice(take)
            if rows == _GROUP_ROWS or size + per_row > BATCH_BYTES:
                yield _table(pending)
                pending, rows, size, yielded = [], 0, 0, True
    if schema is not None and (pending or not yielded):
        yield _table(pending) if pending else schema.empty_table()


def _table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).combine_chunks()


@contextmanager
def _checked_writer(sink: "_HashingFile", schema: pa.Schema, where: str) -> Iterator[pq.ParquetWriter]:
    try:  # what is read for every shard must be read fast: lz4, and no dictionary of values that hardly repeat
        writer = pq.ParquetWriter(sink, schema, compression="lz4", dictionary_pagesize_limit=_DICTIONARY)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise SourceError(f"{where}: {_unwritable(schema)}: {error}") from error
    with writer:
        yield writer


def _unwritable(schema: pa.Schema) -> str:
    for field in schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return f"column {field.name!r} of type {field.type} cannot be stored as Parquet"
    return f"columns {', '.join(schema.names)} cannot be stored as Parquet"


class _HashingFile:
    """A file for writing that hashes what goes through."""

    def __init__(self, raw: BinaryIO) -> None:
        self.hash = hashlib.sha256()
        self.closed = False
        self._raw = raw

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._raw.write(data)

    def tell(self) -> int:
        return self._raw.tell()

    def flush(self) -> None:
        self._raw.flush()

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except TfrError:
        raise
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error}. Nothing was changed.") from error
