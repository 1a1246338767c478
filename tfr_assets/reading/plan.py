"""Which records of which file are decoded in one piece: of a whole set of files, or of one worker's share of it."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from tfr_assets.errors import ConfigError
from tfr_assets.layout import index_path
from tfr_assets.reading.files import RecordFiles, is_remote
from tfr_assets.records.index import read_offsets
from tfr_assets.records.ranges import Range

_PIECE_BYTES = 16 << 20  # a few pieces a thread are in memory at once
_EXPANSION = 8  # what compression is taken to save


def share_of(records: int, shard: tuple[int, int] | None) -> tuple[int, int]:
    """Returns the first record of a worker's share, and the one behind its last: all shares differ by one at most.

    Raises:
        ConfigError: There is no such share.
    """
    if shard is None:
        return 0, records
    check_shard(shard)
    index, count = shard
    return index * records // count, (index + 1) * records // count


def check_shard(shard: object) -> None:
    """Refuses what names no worker's share.

    Raises:
        ConfigError: It is not `(index, count)`.
    """
    match shard:
        case (int(index), int(count)) if 0 <= index < count and not isinstance(index, bool):
            return
    raise ConfigError(f"shard={shard!r} must be (index, count) with 0 <= index < count, such as (0, 4)")


def rows_of_piece(files: RecordFiles, batch_size: int) -> int:
    """Returns how many rows are decoded in one piece: whole batches, unless a batch is large itself."""
    size = files.bytes * (1 if files.compression == "none" else _EXPANSION) / max(1, files.records)
    rows = max(1, int(_PIECE_BYTES / max(1.0, size)))
    return rows // batch_size * batch_size if rows > batch_size else rows


def plan_ranges(files: RecordFiles, start: int, stop: int, rows: int) -> Iterator[Range]:
    """Yields the ranges of the records [start, stop), counted over all files, in order.

    Files that are larger than a piece are cut where a multiple of `rows` has been read in all, so that few batches are
    made of two pieces. A compressed file, a remote one, or one without an index, can only be read from its beginning:
    it is one range.

    Args:
        files: The files.
        start: First record.
        stop: Record behind the last.
        rows: Rows of a piece.
    """
    begin = 0
    for path, records, size in zip(files.paths, files.counts, files.sizes, strict=True):
        end = begin + records
        first, last = max(start, begin), min(stop, end)
        if first < last:
            cuts = np.array([first, last])
            if last - first > rows and files.compression == "none" and not is_remote(path):
                inner = np.arange(start + -(-(first + 1 - start) // rows) * rows, last, rows)
                cuts = np.concatenate([[first], inner, [last]])
            yield from _of_file(path, files.compression, size, records, cuts - begin)
        begin = end


def _of_file(path: str, compression: str, size: int, records: int, cuts: np.ndarray) -> Iterator[Range]:
    first, last = int(cuts[0]), int(cuts[-1])
    if compression == "none" and cuts.tolist() == [0, records]:
        yield Range(path, compression, size, 0, records, 0, size)
        return
    from_beginning = Range(path, compression, size, first, last - first)
    if is_remote(path):
        yield from_beginning
        return
    try:
        offsets = read_offsets(index_path(Path(path)), cuts, records).tolist()
    except (FileNotFoundError, ValueError):  # it only makes things faster
        yield from_beginning
        return
    places = list(zip(cuts.tolist(), offsets, strict=True))
    for (first, start), (last, stop) in pairwise(places):
        yield Range(path, compression, size, first, last - first, start, stop)
