"""Pieces: runs of consecutive records of one file. A reader reads pieces, be they whole files or a worker's share.

    worker 0 of 2            worker 1 of 2
    ├ file 0, all of it      ├ file 1, from record 50 on
    └ file 1, 50 records     └ file 2, all of it

The cut goes through the records of all files in order, so that shares differ by one record at most, whatever the files.
"""

from dataclasses import dataclass
from pathlib import Path

from tfr_assets.errors import StaleError
from tfr_assets.layout import index_path
from tfr_assets.reading.files import RecordFiles, is_remote
from tfr_assets.reading.plan import share_of
from tfr_assets.reading.sets import command_for
from tfr_assets.records.index import read_index
from tfr_assets.records.units import MAX_RECORD_BYTES


@dataclass(frozen=True)
class Piece:
    """A run of records in a file.

    Attributes:
        path: The file, or its URL.
        start: Byte at which to start reading.
        stop: Byte at which the piece ends at the latest.
        skip: Records from there to pass over: where no byte is known to start at.
        records: Number of records.
        first: Index in the file of the first record read, those to pass over included.
        whole: Whether these are all of the file's.
        max_record_bytes: Length beyond which a record is damage.
    """

    path: str
    start: int
    stop: int
    skip: int
    records: int
    first: int = 0
    whole: bool = True
    max_record_bytes: int = MAX_RECORD_BYTES


def pieces_of(files: RecordFiles, shard: tuple[int, int] = (0, 1)) -> list[Piece]:
    """Returns what one worker of several reads: the whole files, if it is alone.

    All workers together get every record exactly once. Files that are cut are opened by their index of offsets;
    compressed and remote ones, where no offset leads to a record, are read from their beginning.

    Args:
        files: All files.
        shard: Which worker, and of how many.

    Raises:
        StaleError: A file that must be cut has no index that fits.
    """
    first, last = share_of(files.records, shard)
    pieces, before = [], 0
    for path, records, size in zip(files.paths, files.counts, files.sizes, strict=True):
        begin, end = max(first - before, 0), min(last - before, records)
        if (begin, end) == (0, records) and (records or shard[1] == 1):
            pieces.append(Piece(path, 0, size, 0, records, max_record_bytes=files.max_record_bytes))
        elif begin < end:
            pieces.append(_cut(files, path, records, size, begin, end))
        before += records
    return pieces


def _cut(files: RecordFiles, path: str, records: int, size: int, begin: int, end: int) -> Piece:
    longest = files.max_record_bytes
    if files.compression != "none" or is_remote(path):
        return Piece(path, 0, size, begin, end - begin, whole=False, max_record_bytes=longest)
    try:
        index = read_index(index_path(Path(path)))
    except (OSError, ValueError) as error:
        raise StaleError(_no_index(path, str(error))) from error
    if len(index) != records or int(index[-1].sum()) != size:
        raise StaleError(_no_index(path, "it is that of another file"))
    start, stop = int(index[begin, 0]), int(index[end - 1].sum())
    return Piece(path, start, stop, 0, end - begin, begin, whole=False, max_record_bytes=longest)


def _no_index(path: str, why: str) -> str:
    return (
        f"{path} must be read from its middle, but its index cannot be used: {why}. {command_for(path)} writes it again"
    )
