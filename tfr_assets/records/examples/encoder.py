"""Arrow record batches → framed tf.Examples or tf.SequenceExamples, ready to be written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfr_assets.errors import SchemaError
from tfr_assets.records.arrow.buffers import Buffer, Memory
from tfr_assets.records.examples.bind import Column
from tfr_assets.records.kernels.column_table import FIELDS
from tfr_assets.records.kernels.encode import bound, emit
from tfr_assets.records.kernels.jit import PADDING, address_of
from tfr_assets.records.schema.arrow_types import cast_type
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.units import megabytes

_TARGET = 512 * 1024  # bytes of output at a time: what was just written is still in the second-level cache for its CRC
BUFFER = 2 * _TARGET  # bytes, which are enough for most
_TOGETHER = 4  # records whose CRCs cost hardly more than one's: worth leaving that cache for, but not more memory than
_LARGE = 8 << 20
_MAX_ROWS = 4096


@dataclass(frozen=True)
class Frames:
    """Consecutive whole frames in memory.

    Attributes:
        data: The bytes.
        sizes: int64 of shape (records,): size of each frame, header and footer included.
    """

    data: memoryview
    sizes: np.ndarray


def no_room(first: int, rows: int, size: int) -> str:
    """Returns what there is no memory for."""
    which = f"row {first}, a record" if rows == 1 else f"rows {first} to {first + rows - 1}, records"
    return f"{which} of up to {size} bytes ({megabytes(size)})"


class ExampleEncoder:
    """Encodes batches of one schema; not for several threads at once."""

    def __init__(self, spec: FeatureSpec, cast: Mapping[str, str] | None = None, memory: Memory | None = None) -> None:
        """Prepares the encoder.

        Args:
            spec: The features, as `derive_spec` returns them.
            cast: Arrow type names by column, as in `FeatureOptions`.
            memory: For the output; None: one buffer, so that frames are valid until the next step.
        """
        casts = {path: cast_type(name, path) for path, name in (cast or {}).items()}
        columns = [Column(feature, casts.get(feature.column)) for feature in spec.features]
        self._columns = [column for column in columns if not column.feature.sequence]
        self._lists = [column for column in columns if column.feature.sequence]
        self._scratch = np.empty(len(self._lists), np.int64)
        self._memory = memory or Buffer()

    def encode(self, batch: pa.RecordBatch, first_row: int = 0) -> Iterator[Frames]:
        """Yields the frames of a batch's rows in order, some hundred kB at a time.

        Args:
            batch: Holds all columns of the spec.
            first_row: Row of the dataset that the batch starts with, for messages.

        Raises:
            SchemaError: A value that a tf.Example cannot hold, named with its column; a record beyond 2 GiB.
            MemoryError: There is no memory for the frames; it says for which rows.
        """
        if batch.num_rows == 0:
            return
        table, lists = (
            np.array([column.bind(batch, first_row) for column in columns], np.int64).reshape(-1, FIELDS)
            for columns in (self._columns, self._lists)
        )
        each = batch.nbytes // batch.num_rows + 200
        step = max(1, min(_MAX_ROWS, max(_TARGET // each, min(_TOGETHER, _LARGE // each))))
        for start in range(0, batch.num_rows, step):
            rows = min(step, batch.num_rows - start)
            sizes = np.empty(rows, np.int64)
            room = max(BUFFER, self._room(table, lists, start, rows))
            try:
                output = self._memory.take(room)
            except MemoryError as error:
                raise MemoryError(no_room(first_row + start, rows, room)) from error
            total = self._emit(table, lists, start, rows, sizes, output)
            if total < 0:
                raise SchemaError(
                    f"row {first_row + start - total - 1} would become a record beyond 2 GiB, the limit of a protobuf; "
                    "split it, or store a path to its data"
                )
            yield Frames(output[:total].data, sizes)

    def _room(self, table: np.ndarray, lists: np.ndarray, start: int, rows: int) -> int:
        room = bound(address_of(table), len(table), start, rows) + PADDING
        if not self._lists:
            return room
        from tfr_assets.records.kernels.encode_sequence import (
            bound_lists,  # not above: it takes seconds to compile, and few need it
        )

        return room + bound_lists(address_of(lists), len(lists), start, rows)

    def _emit(
        self, table: np.ndarray, lists: np.ndarray, start: int, rows: int, sizes: np.ndarray, output: np.ndarray
    ) -> int:
        """Fills sizes and output; returns what `emit` does."""
        context, target = (address_of(table), len(table)), (start, rows, address_of(sizes), address_of(output))
        if not self._lists:
            return emit(*context, *target)
        from tfr_assets.records.kernels.encode_sequence import emit_sequences

        return emit_sequences(*context, address_of(lists), len(lists), address_of(self._scratch), *target)
