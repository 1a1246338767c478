"""Ranges of records of TFRecord files → columns, with every CRC checked and every damaged record named."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from tfr_assets.errors import DamagedFile, OutOfMemory
from tfr_assets.records.arrays import Column
from tfr_assets.records.compression import InputStream
from tfr_assets.records.decoder import Decoder, Problem
from tfr_assets.records.features import FeatureSpec
from tfr_assets.records.partitions import parts_of, put_together
from tfr_assets.records.scan import Fault, FaultKind, scan_stream
from tfr_assets.records.skipped import MOST_FAULTS, Skipped, told
from tfr_assets.records.units import MAX_RECORD_BYTES, megabytes

Columns = dict[str, Column]
Emit = Callable[[Columns], None]
"""Called with columns of equally many rows. They are views of memory that nobody writes to any more."""


@dataclass(frozen=True)
class Range:
    """Consecutive records of a file.

    Attributes:
        path: The file.
        compression: `none`, `gzip` or `zlib`.
        size: Bytes of the file.
        first: Index of the first record.
        records: Number of records.
        start: Where the first one's frame starts in the decompressed stream.
        stop: Where the last one's ends; None where that is not known.
    """

    path: str
    compression: str
    size: int
    first: int
    records: int
    start: int = 0
    stop: int | None = None

    @property
    def bytes_read(self) -> tuple[int, int]:
        """Where in the file reading starts and ends: with the range's own bytes, unless all before is needed, too."""
        if self.compression != "none" or self.stop is None:
            return 0, self.size
        return self.start, self.stop


Opener = Callable[[Range], AbstractContextManager[InputStream]]
"""Opens what must be read of a range's file."""


class RangeDecoder:
    """Decodes ranges, one after another. One thread at a time may use it.

    Args:
        spec: How the records are parsed.
        names: The columns to decode, by base name.
        rows: Rows that columns shall have at the most.
        opened: Opens a range's file.
        skip: Whether damaged records are passed over, rather than an error.
        max_record_bytes: Length beyond which a record is damage.

    Raises:
        ConfigError: The spec holds what cannot be decoded here.
    """

    def __init__(
        self,
        spec: FeatureSpec,
        names: tuple[str, ...],
        rows: int,
        opened: Opener,
        skip: bool = False,
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> None:
        self._spec, self._rows, self._opened, self._skip = spec, rows, opened, skip
        self._max_record_bytes = max_record_bytes
        self._decoder = Decoder(spec, {part.name for name in names for part in parts_of(spec, name)})

    def decode(self, wanted: Range, emit: Emit) -> Skipped:
        """Decodes the records of a range in order.

        Args:
            wanted: The range.
            emit: Takes the columns; all rows but for the last ones as many as they may have.

        Returns:
            What was passed over.

        Raises:
            DamagedFile: A record is damaged, does not fit the spec, or is not there; what lies before it may have been
                emitted. Not with `skip`.
            OutOfMemory: There is no memory for some records' values.
            TfrError: As whoever opens the file raises it.
        """
        pass_ = _Pass(self._spec, self._decoder, self._rows, self._skip, wanted, emit)
        origin = wanted.bytes_read[0]
        first = wanted.first if origin else 0
        with self._opened(wanted) as stream:
            scan = scan_stream(
                stream, wanted.path, pass_.visit, max_faults=MOST_FAULTS, origin=origin, first=first,
                max_record_bytes=self._max_record_bytes,
            )  # fmt: skip
        return pass_.finish(scan.faults)


class _Pass:
    """One pass over a range."""

    def __init__(self, spec: FeatureSpec, decoder: Decoder, rows: int, skip: bool, wanted: Range, emit: Emit) -> None:
        self._spec, self._decoder, self._skip, self._wanted, self._emit = spec, decoder, skip, wanted, emit
        self._limit = min(rows, wanted.records)
        self._next = wanted.first
        self._broken = False
        self._given = 0
        self._misfits: list[Fault] = []
        decoder.clear()

    def visit(self, buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        """See `records.scan.FrameVisitor`."""
        frames = self._selected(frames, offset)
        if not self._skip:
            frames = self._unbroken(frames)
        while len(frames):
            if not self._decoder.room:
                self._decoder.start(self._limit)
            taken = np.ascontiguousarray(frames[: self._limit - self._decoder.rows])
            frames = frames[len(taken) :]
            try:
                if problems := self._decoder.add(buffer, taken):
                    self._refuse(problems, _places(taken, offset))
                    taken = np.delete(taken, [problem.index for problem in problems], 0)
                    problems = self._decoder.add(buffer, taken)
                    assert not problems
            except MemoryError as error:
                raise OutOfMemory(self._no_memory(taken)) from error
            if self._decoder.rows == self._limit:
                self._flush()

    def _no_memory(self, frames: np.ndarray) -> str:
        first, last, size = int(frames[0, 2]), int(frames[-1, 2]), int(frames[:, 1].sum())
        return (
            f"{self._wanted.path}: there is no memory for the values of records {first} to {last}, {size} bytes "
            f"({megabytes(size)}); use a smaller batch_size, fewer workers or columns, or a larger machine"
        )

    def _selected(self, frames: np.ndarray, offset: int) -> np.ndarray:
        """Returns the frames that are of the range: by where they lie, since a damaged header confuses the count."""
        wanted = self._wanted
        if wanted.stop is None:
            at, start, stop = frames[:, 2], wanted.first, wanted.first + wanted.records
        else:
            at, start, stop = frames[:, 0], wanted.start - offset, wanted.stop - offset
        if at[0] >= start and at[-1] < stop:  # as nearly always
            return frames
        return frames[(at >= start) & (at < stop)]

    def _unbroken(self, frames: np.ndarray) -> np.ndarray:
        """Returns the frames before the first one that is missing."""
        if self._broken or not len(frames):
            return frames[:0]
        if frames[-1, 2] - self._next != len(frames) - 1:
            self._broken = True
            frames = frames[: int((frames[:, 2] != np.arange(self._next, self._next + len(frames))).argmax())]
        self._next += len(frames)
        return frames

    def _flush(self) -> None:
        if rows := self._decoder.rows:
            self._given += rows
            self._emit(put_together(self._spec, self._decoder.finish()))

    def _refuse(self, problems: list[Problem], places: np.ndarray) -> None:
        """Notes records that do not fit the spec, or raises the first."""
        faults = []
        for problem in problems[:MOST_FAULTS]:
            record, offset = places[problem.index].tolist()
            faults.append(Fault(self._wanted.path, record, offset, FaultKind.FEATURES, problem.text))
        if not self._skip:
            raise DamagedFile(told(faults[:1]))
        self._misfits += faults

    def finish(self, faults: tuple[Fault, ...]) -> Skipped:
        """Emits what is left when the scan has come to its end, and accounts for what is missing."""
        wanted = self._wanted
        missing = wanted.records - self._given - self._decoder.rows
        if missing and not self._skip:
            stop = wanted.first + wanted.records
            for fault in faults:
                if wanted.first <= fault.record <= stop:
                    raise DamagedFile(told([fault]))
            text = f"{wanted.records - missing} of the {wanted.records} records from there on are there"
            raise DamagedFile(told([Fault(wanted.path, wanted.first, wanted.start, FaultKind.COUNT, text)]))
        self._flush()
        missing = wanted.records - self._given
        return Skipped(missing, (*faults, *self._misfits)) if missing else Skipped()


def _places(frames: np.ndarray, offset: int) -> np.ndarray:
    """Returns index and payload offset of each record, int64 of shape (n, 2)."""
    return frames[:, [2, 0]] + [0, offset]
