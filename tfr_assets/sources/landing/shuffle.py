"""A global shuffle in bounded memory: each row gets a random number, and rows are sorted by it.

The number of row i is the i-th of a Philox stream, so the order depends on the rows and the seed alone, not on how rows
come in batches or how much fits into memory.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tfr_assets.sources.landing.spool import MEMORY, sort_rows, with_numbers


def shuffle(
    batches: Iterator[pa.RecordBatch], seed: int, folder: Path, memory: int = MEMORY
) -> Iterator[pa.RecordBatch]:
    """Yields the rows in random order; the same for the same rows and seed.

    Args:
        batches: The rows, all of one schema; an empty batch is enough to tell it.
        seed: From 0 up.
        folder: For spool files; the caller removes it. They take as much room as the rows in memory.
        memory: Bytes of rows that are sorted at once.
    """
    stream = np.random.Philox(seed)
    numbered = (with_numbers(batch, np.asarray(stream.random_raw(batch.num_rows), np.uint64)) for batch in batches)
    return sort_rows(numbered, folder, memory)
