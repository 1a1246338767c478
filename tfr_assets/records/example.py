"""Arrow record batches → framed tf.Examples, ready to be written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfr_assets.errors import SchemaError
from tfr_assets.records.columns import Column, column_of, physical
from tfr_assets.records.encode import FIELDS, bound, emit
from tfr_assets.records.features import FeatureSpec
from tfr_assets.records.jit import PADDING, address_of
from tfr_assets.records.schema import parse_type

_TARGET = 512 * 1024  # bytes of output at a time: what was just written is still in the second-level cache for its CRC
_MAX_ROWS = 4096


@dataclass(frozen=True)
class Frames:
    """Consecutive whole frames in memory, valid until the encoder's next step.

    Attributes:
        data: The bytes.
        sizes: int64 of shape (records,): size of each frame, header and footer included.
    """

    data: memoryview
    sizes: np.ndarray


class ExampleEncoder:
    """Encodes batches of one schema. Reuses one output buffer; not for several threads at once."""

    def __init__(self, spec: FeatureSpec, cast: Mapping[str, str] | None = None) -> None:
        """Prepares the encoder.

        Args:
            spec: The features, as `derive_spec` returns them.
            cast: Arrow type names by column, as in `FeatureOptions`.
        """
        self._columns = [Column(feature) for feature in spec.features]
        self._cast = {path: parse_type(name) for path, name in (cast or {}).items()}
        self._output = np.empty(2 * _TARGET, np.uint8)
        self._sizes = np.empty(_MAX_ROWS, np.int64)

    def encode(self, batch: pa.RecordBatch, first_row: int = 0) -> Iterator[Frames]:
        """Yields the frames of a batch's rows in order, some hundred kB at a time.

        Args:
            batch: Holds all columns of the spec.
            first_row: Row of the dataset that the batch starts with, for messages.

        Raises:
            SchemaError: A value that a tf.Example cannot hold, named with its column; a record beyond 2 GiB.
        """
        if batch.num_rows == 0:
            return
        lines, held = [], []
        for column in self._columns:
            path = column.feature.column
            array = physical(column_of(batch, path), column.feature, self._cast.get(path))
            lines.append(column.bind(array, first_row))
            held.append(array)
        table = np.array(lines, np.int64).reshape(-1, FIELDS)
        step = max(1, min(_MAX_ROWS, _TARGET * batch.num_rows // (batch.nbytes + 200 * batch.num_rows)))
        for start in range(0, batch.num_rows, step):
            yield self._encode_rows(table, start, min(step, batch.num_rows - start), first_row)

    def _encode_rows(self, table: np.ndarray, start: int, rows: int, first_row: int) -> Frames:
        room = bound(address_of(table), len(table), start, rows) + PADDING
        if room > self._output.size:
            self._output = np.empty(room, np.uint8)
        total = emit(address_of(table), len(table), start, rows, address_of(self._sizes), address_of(self._output))
        if total < 0:
            raise SchemaError(
                f"row {first_row + start - total - 1} would become a record beyond 2 GiB, the limit of a protobuf; "
                "split it, or store a path to its data"
            )
        return Frames(self._output[:total].data, self._sizes[:rows])
