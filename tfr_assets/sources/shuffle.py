"""A global shuffle in bounded memory: each row gets a random key, and rows are sorted by it.

The key of row i is the i-th number of a Philox stream, so the order hangs on the rows and the seed alone, not on how
rows come in batches or how much fits into memory. Sorting is a radix sort through files: rows that do not fit are dealt
by the top bits of their keys into 64 spool files, and each of these is sorted alike, by the next bits.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

_KEY = "\0key"  # no column of a source can be named so: it would be no name to write in YAML
_BITS = 6
_MEMORY = 64 << 20
_BLOCK = 16 << 20
_BATCH_ROWS = 16_384


def shuffle(
    batches: Iterator[pa.RecordBatch], seed: int, folder: Path, memory: int = _MEMORY
) -> Iterator[pa.RecordBatch]:
    """Yields the rows in random order; the same for the same rows and seed.

    Args:
        batches: The rows, all of one schema; an empty batch is enough to tell it.
        seed: From 0 up.
        folder: For spool files; the caller removes it. They take as much room as the rows in memory.
        memory: Bytes of rows that are sorted at once.
    """
    keyed = _with_keys(batches, np.random.Philox(seed))
    for batch in _sorted(keyed, folder, memory, depth=0):
        yield batch.drop_columns([_KEY])


def _with_keys(batches: Iterator[pa.RecordBatch], stream: np.random.Philox) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        keys = np.asarray(stream.random_raw(batch.num_rows), np.uint64)
        yield batch.append_column(_KEY, pa.array(keys))


def _sorted(batches: Iterator[pa.RecordBatch], folder: Path, memory: int, depth: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > memory and (depth + 1) * _BITS <= 64:
            break
    else:
        if held:
            block = _one(held)
            order = np.argsort(_keys(block), kind="stable")
            step = max(1, min(_BATCH_ROWS, _BLOCK * max(block.num_rows, 1) // max(block.nbytes, 1)))
            for start in range(0, max(block.num_rows, 1), step):
                yield block.take(pa.array(order[start : start + step]))
        return
    for path in _deal(chain(held, batches), folder, depth):
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            yield from _sorted(reader, folder, memory, depth + 1)
        path.unlink()


def _deal(batches: Iterator[pa.RecordBatch], folder: Path, depth: int) -> list[Path]:
    """Writes each row to the file of its bucket; returns the files in order of the buckets."""
    shift = np.uint64(64 - (depth + 1) * _BITS)
    paths: dict[int, Path] = {}
    with ExitStack() as stack:
        writers: dict[int, pa.RecordBatchStreamWriter] = {}
        for block in _blocks(batches):
            buckets = (_keys(block) >> shift).astype(np.int64) & (2**_BITS - 1)
            order = np.argsort(buckets, kind="stable")
            dealt = block.take(pa.array(order))
            found, starts = np.unique(buckets[order], return_index=True)
            for bucket, start, stop in zip(found, starts, [*starts[1:], len(order)], strict=True):
                if bucket not in writers:
                    paths[bucket] = folder / f"spool-{depth}-{bucket:02d}.arrow"
                    file = stack.enter_context(pa.OSFile(str(paths[bucket]), "wb"))
                    writers[bucket] = stack.enter_context(pa.ipc.new_stream(file, block.schema))
                writers[bucket].write_batch(dealt.slice(start, stop - start))
    return [paths[bucket] for bucket in sorted(paths)]


def _blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Joins batches to ones of about 16 MB, so that dealing them makes few and large pieces."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= _BLOCK:
            yield _one(held)
            held, size = [], 0
    if held:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches).combine_chunks()
    return next(iter(table.to_batches()), pa.RecordBatch.from_pylist([], table.schema))


def _keys(batch: pa.RecordBatch) -> np.ndarray:
    return np.asarray(batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False), np.uint64)
