"""Rows that do not fit into memory, by a number each: partitioned into files, and sorted.

The number is the last column of every batch, a uint64 named `NUMBER`. Partitioning goes by its bits from the top, six
at a time, so that numbers should be spread over all of their range. NumPy and Arrow do the work; a database would be a
dependency more, for 0.4 µs per row.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

NUMBER = "\0number"  # no column of a source can be named so: it would be no name to write in YAML
NUMBER_FIELD = pa.field(NUMBER, pa.uint64())
MEMORY = 64 << 20
_BITS = 6
_BLOCK = 16 << 20
_BATCH_ROWS = 16_384


def with_numbers(batch: pa.RecordBatch, numbers: np.ndarray) -> pa.RecordBatch:
    """Returns the rows with a number each: uint64 of shape (rows,)."""
    return batch.append_column(NUMBER_FIELD, pa.array(numbers, pa.uint64()))


def sort_rows(
    batches: Iterator[pa.RecordBatch], folder: Path, memory: int = MEMORY, depth: int = 0
) -> Iterator[pa.RecordBatch]:
    """Yields rows by ascending number, those of equal numbers in the order they came, and drops the numbers.

    A radix sort: what does not fit into memory is partitioned into files, and each of these is sorted alike.

    Args:
        batches: Rows with numbers, all of one schema; an empty batch is enough to tell it.
        folder: For spool files, which take as much room as the rows in memory. The caller removes it.
        memory: Bytes of rows that are sorted at once.
        depth: How often the rows have been partitioned already.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > memory and can_partition(depth):
            break
    else:
        if held:
            block = concatenate(held)
            order = np.argsort(_numbers(block), kind="stable")
            yield from take_rows(block.drop_columns([NUMBER]), order)
        return
    for path in partition(chain(held, batches), folder, depth).values():
        with read_spool(path) as rows:
            yield from sort_rows(rows, folder, memory, depth + 1)


def take_rows(block: pa.RecordBatch, order: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a block in the order of their positions, in batches of at most about 16 MB."""
    step = max(1, min(_BATCH_ROWS, _BLOCK * max(block.num_rows, 1) // max(block.nbytes, 1)))
    for start in range(0, max(len(order), 1), step):
        yield block.take(pa.array(order[start : start + step], pa.int64()))


def can_partition(depth: int) -> bool:
    """Whether rows that were partitioned `depth` times have bits left for another time."""
    return (depth + 1) * _BITS <= 64


def partition(batches: Iterator[pa.RecordBatch], folder: Path, depth: int, name: str = "spool") -> dict[int, Path]:
    """Writes each row to the file of its bucket; returns the files by bucket, in ascending order.

    Args:
        batches: Rows with numbers.
        folder: Where the files shall lie.
        depth: How often the rows have been partitioned already: 0 looks at the top bits of their numbers.
        name: Begins the files' names.
    """
    shift = np.uint64(64 - (depth + 1) * _BITS)
    paths: dict[int, Path] = {}
    with ExitStack() as stack:
        writers: dict[int, pa.RecordBatchStreamWriter] = {}
        for block in _blocks(batches):
            buckets = (_numbers(block) >> shift).astype(np.int64) & (2**_BITS - 1)
            order = np.argsort(buckets, kind="stable")
            arranged = block.take(pa.array(order))
            found, starts = np.unique(buckets[order], return_index=True)
            for bucket, (start, stop) in zip(found.tolist(), pairwise([*starts, len(order)]), strict=True):
                if bucket not in writers:
                    paths[bucket] = folder / f"{name}-{depth}-{bucket:02d}.arrow"
                    file = stack.enter_context(pa.OSFile(str(paths[bucket]), "wb"))
                    writers[bucket] = stack.enter_context(pa.ipc.new_stream(file, block.schema))
                writers[bucket].write_batch(arranged.slice(start, stop - start))
    return dict(sorted(paths.items()))


@contextmanager
def read_spool(path: Path) -> Iterator[pa.RecordBatchStreamReader]:
    """Reads the rows of a spool file once, and removes it."""
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        yield reader
    path.unlink()


def concatenate(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns the rows of at least one batch as one batch."""
    table = pa.Table.from_batches(batches).combine_chunks()
    return next(iter(table.to_batches()), pa.RecordBatch.from_pylist([], table.schema))


def _blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Joins batches to ones of about 16 MB, so that partitioning them makes few and large pieces."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= _BLOCK:
            yield concatenate(held)
            held, size = [], 0
    if held:
        yield concatenate(held)


def _numbers(batch: pa.RecordBatch) -> np.ndarray:
    return np.asarray(batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False), np.uint64)
