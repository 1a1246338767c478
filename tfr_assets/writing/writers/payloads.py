"""Records that are serialized already → frames: only lengths and CRCs are added."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tfr_assets.records.arrow.buffers import Buffer, Memory
from tfr_assets.records.examples.encoder import BUFFER, Frames, no_room
from tfr_assets.records.kernels.encode import FOOTER, HEADER, put_crcs
from tfr_assets.records.kernels.jit import address_of, copy_bytes, kernel, load_i64, store_i64

PAYLOADS = pa.schema([pa.field("payload", pa.large_binary())])
"""Schema of batches of such records."""

_TARGET = 512 * 1024  # bytes of output at a time, for the second-level cache
_FRAMING = HEADER + FOOTER


@kernel("int64(int64, int64, int64, int64, int64)")
def _frame(values: int, offsets: int, rows: int, sizes: int, target: int) -> int:
    """Writes frames around the values between consecutive int64 offsets, and their sizes; returns bytes written."""
    frame = target
    for i in range(rows):
        start = load_i64(offsets + i * 8)
        size = load_i64(offsets + i * 8 + 8) - start
        store_i64(frame, size)
        copy_bytes(frame + HEADER, values + start, size)  # type: ignore[call-arg]  # as numba calls intrinsics
        store_i64(sizes + i * 8, HEADER + size + FOOTER)
        frame += HEADER + size + FOOTER
    put_crcs(sizes, rows, target)
    return frame - target


class PayloadEncoder:
    """Frames batches of the schema `PAYLOADS`; not for several threads at once."""

    def __init__(self, memory: Memory | None = None) -> None:
        """Prepares the encoder, which writes into `memory`; None: as `ExampleEncoder`."""
        self._memory = memory or Buffer()

    def encode(self, batch: pa.RecordBatch, first_row: int = 0) -> Iterator[Frames]:
        """Yields the frames of a batch's records in order, some hundred kB at a time.

        Args:
            batch: Without nulls.
            first_row: Row of the data that the batch starts with, for messages.

        Raises:
            MemoryError: There is no memory for the frames; it says for which rows.
        """
        array = batch.column(0)
        if not len(array):
            return
        _, starts, values = array.buffers()
        offsets = np.frombuffer(starts, np.int64)[array.offset : array.offset + len(array) + 1]
        ends = offsets + _FRAMING * np.arange(len(offsets))  # of the frames, if all were written at once
        start = 0
        while start < len(array):
            stop = max(start + 1, int(np.searchsorted(ends, ends[start] + _TARGET, "right")) - 1)
            room = int(ends[stop] - ends[start])
            try:
                output = self._memory.take(max(BUFFER, room))
            except MemoryError as error:
                raise MemoryError(no_room(first_row + start, stop - start, room)) from error
            sizes = np.empty(stop - start, np.int64)
            address = values.address if values else 0
            _frame(address, address_of(offsets[start:]), stop - start, address_of(sizes), address_of(output))
            yield Frames(output[:room].data, sizes)
            start = stop
