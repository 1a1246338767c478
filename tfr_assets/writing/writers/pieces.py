"""Pieces of shards, and how one worker writes those that it is given."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa

from tfr_assets.errors import TfrError
from tfr_assets.records.examples.encoder import Frames
from tfr_assets.records.examples.writer import FileWriter
from tfr_assets.writing.writers.outcome import Report
from tfr_assets.writing.writers.write_plan import WritePlan


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of one shard.

    Attributes:
        shard: Number of the shard.
        first_row: Row of the data that the batch starts with, for messages.
        batch: The rows.
    """

    shard: int
    first_row: int
    batch: pa.RecordBatch


@dataclass(frozen=True)
class End:
    """All pieces of a shard have been given. A shard that never ends never gets its name.

    Attributes:
        shard: Number of the shard.
        records: Number of its records.
    """

    shard: int
    records: int


class _UnfinishedError(Exception):
    """Not all rows of a shard came; it ends what writes the file, and is never seen outside."""


class OpenShards:
    """Shards that are being written. What goes wrong with one is reported, and does not touch the others.

    A context: leaving it removes what has not come to its end. Not for several threads at once.
    """

    def __init__(self, plan: WritePlan, report: Report) -> None:
        self._plan, self._report = plan, report
        self._open: dict[int, FileWriter] = {}
        self._ends: dict[int, int] = {}
        self._failed: set[int] = set()

    def __enter__(self) -> "OpenShards":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._open.values():
            file.__exit__(_UnfinishedError, _UnfinishedError(), None)

    def append(self, shard: int, frames: Iterable[Frames]) -> None:
        """Writes frames after those that the shard has.

        Args:
            shard: Number of the shard.
            frames: They may be encoded on the way; a `TfrError` or `MemoryError` that this raises is the shard's.
        """
        if shard in self._failed:
            return
        try:
            file = self._file(shard)
            for some in frames:
                file.append(some)
                self._report.wrote(len(some.sizes))
            self._finish_if_whole(shard)
        except (TfrError, OSError, MemoryError) as error:
            self.fail(shard, error)

    def end(self, end: End) -> None:
        """Notes how many records a shard has; it is finished when they are all there, now or later."""
        self._ends[end.shard] = end.records
        self.append(end.shard, ())

    def fail(self, shard: int, error: TfrError | OSError | MemoryError) -> None:
        """Gives a shard up."""
        self._failed.add(shard)
        try:
            file = self._open.get(shard) if isinstance(error, TfrError) else self._file(shard)
            if file is not None:
                del self._open[shard]
                file.__exit__(type(error), error, error.__traceback__)
        except TfrError as clear:  # what the file system said, or what there is no memory for, with the path
            error = clear
        assert isinstance(error, TfrError)
        self._report.failed(shard, error)

    def _file(self, shard: int) -> FileWriter:
        if shard not in self._open:
            plan = self._plan
            made_from = plan.shard_made_from(shard)
            file = FileWriter(plan.paths[shard], plan.compression, plan.features, made_from)
            self._open[shard] = file.__enter__()
        return self._open[shard]

    def _finish_if_whole(self, shard: int) -> None:
        file = self._open[shard]
        if file.records == self._ends.get(shard):
            del self._open[shard]
            file.__exit__(None, None, None)
            self._report.finished(shard, file.manifest)


def write_pieces(plan: WritePlan, pieces: Iterable[Piece | End], report: Report) -> None:
    """Encodes and writes pieces one after another: all that a worker does, in whatever thread or process.

    Args:
        plan: What they are pieces of.
        pieces: Those of one shard in order; shards may alternate.
        report: Is called with what happens to the shards.
    """
    encoder = plan.encoder()
    with OpenShards(plan, report) as shards:
        for piece in pieces:
            if isinstance(piece, End):
                shards.end(piece)
            else:
                shards.append(piece.shard, encoder.encode(piece.batch, piece.first_row))
