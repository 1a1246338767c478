"""Ranges of records of TFRecord files → columns, with every CRC and digest checked and every damaged record named."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from tfr_assets.errors import DamagedFile, OutOfMemory
from tfr_assets.records.arrow.arrays import Column
from tfr_assets.records.arrow.ragged import put_together
from tfr_assets.records.examples.decoder import Decoder, Problem
from tfr_assets.records.frames.compression import InputStream
from tfr_assets.records.frames.scan import Fault, FaultKind
from tfr_assets.records.frames.segments import Range, Segment, ends, read_segment
from tfr_assets.records.frames.skipped import MOST_FAULTS, Skipped, describe_faults
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.units import megabytes

Columns = dict[str, Column]
Emit = Callable[[Columns], None]
"""Called with columns with the same number of rows. They are views of memory that is not written to any more."""
Opener = Callable[[Range], AbstractContextManager[InputStream]]
"""Opens the part of a range's file that must be read."""


def row_count(columns: Columns) -> int:
    """Returns the number of rows of columns, of which there is at least one."""
    return len(next(iter(columns.values())))


class RangeDecoder:
    """Decodes ranges, one after another. One thread at a time may use it.

    Args:
        spec: How the records are parsed.
        names: The columns to decode, by base name.
        opened: Opens a range's file.
        skip: Whether damaged records are skipped, rather than an error.
        nulls: Whether absent strings are distinguished from empty ones, as `Decoder` says.
        tensor_strings: Whether single strings are as TensorFlow takes them.

    Raises:
        ConfigError: The spec holds what cannot be decoded here.
    """

    def __init__(
        self,
        spec: FeatureSpec,
        names: tuple[str, ...],
        opened: Opener,
        skip: bool = False,
        nulls: bool = False,
        tensor_strings: bool = False,
    ) -> None:
        self._spec, self._opened, self._skip = spec, opened, skip
        features = {part.name for name in names for part in spec.columns[name]}
        self._decoder = Decoder(spec, features, nulls, tensor_strings)

    def decode(self, wanted: Range, emit: Emit) -> Skipped:
        """Decodes the records of a range in order.

        Args:
            wanted: The range.
            emit: Takes the columns, a segment's rows at a time, which are those that its manifest says.

        Returns:
            What was skipped.

        Raises:
            StaleError: The file is not the one whose manifest was opened; what lies before may have been emitted.
            DamagedFile: A record is damaged, does not fit the spec, or is not there; what lies before its segment may
                have been emitted. Not with `skip`, unless nothing proves that the rest is right.
            TfrError: As opening the file raises it.
        """
        skipped = Skipped()
        with self._opened(wanted) as stream:
            for segment in wanted.segments:
                pass_ = _Pass(self._spec, self._decoder, self._skip, wanted, segment)
                faults = read_segment(stream, wanted, segment, pass_.visit, self._skip)
                columns, lost = pass_.finish(faults)
                if columns:
                    emit(columns)
                skipped += lost
                if ends(faults):
                    rest = wanted.stop - max(wanted.first, segment.first + segment.records)
                    return skipped + Skipped(max(0, rest))
        return skipped


class _Pass:
    """Decodes one segment."""

    def __init__(self, spec: FeatureSpec, decoder: Decoder, skip: bool, wanted: Range, segment: Segment) -> None:
        self._spec, self._decoder, self._skip, self._path = spec, decoder, skip, wanted.path
        self._first = max(wanted.first, segment.first)
        self._stop = min(wanted.stop, segment.first + segment.records)
        self._misfits: list[Fault] = []
        decoder.clear()

    def visit(self, buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        """See `records.frames.scan.FrameVisitor`."""
        if frames[0, 2] < self._first or frames[-1, 2] >= self._stop:
            frames = frames[(frames[:, 2] >= self._first) & (frames[:, 2] < self._stop)]
        if not len(frames):
            return
        taken = np.ascontiguousarray(frames)
        try:
            if not self._decoder.room:
                self._decoder.start(self._stop - self._first)
            if problems := self._decoder.add(buffer, taken):
                self._note(problems, _places(taken, offset))
                taken = np.delete(taken, [problem.index for problem in problems], 0)
                problems = self._decoder.add(buffer, taken)
                assert not problems
        except MemoryError as error:
            raise OutOfMemory(self._no_memory(frames)) from error

    def finish(self, faults: tuple[Fault, ...]) -> tuple[Columns | None, Skipped]:
        """Returns the columns of the rows that were visited, when these are known to be the right ones.

        Args:
            faults: What was found in the segment.
        """
        wanted, rows = self._stop - self._first, self._decoder.rows
        if not self._skip:
            if self._misfits:
                raise DamagedFile(describe_faults(self._misfits[:1]))
            if rows < wanted:
                raise DamagedFile(describe_faults(faults[:1]))
        columns = put_together(self._spec, self._decoder.finish()) if rows else None
        return columns, Skipped(wanted - rows, (*faults, *self._misfits)) if wanted > rows else Skipped()

    def _no_memory(self, frames: np.ndarray) -> str:
        first, last, size = int(frames[0, 2]), int(frames[-1, 2]), int(frames[:, 1].sum())
        return (
            f"{self._path}: there is no memory for the values of records {first} to {last}, {size} bytes "
            f"({megabytes(size)}); use a smaller batch_size, fewer workers or columns, or a larger machine"
        )

    def _note(self, problems: list[Problem], places: np.ndarray) -> None:
        """Notes records that do not fit the spec."""
        for problem in problems[: MOST_FAULTS - len(self._misfits)]:
            record, offset = places[problem.index].tolist()
            self._misfits.append(Fault(self._path, record, offset, FaultKind.FEATURES, problem.text))


def _places(frames: np.ndarray, offset: int) -> np.ndarray:
    """Returns index and payload offset of each record, int64 of shape (n, 2)."""
    return frames[:, [2, 0]] + [0, offset]
