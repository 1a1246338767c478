"""`single_writer_queue`: several threads encode, one writes what they hand to it through a bounded queue."""

from collections.abc import Iterable

import numpy as np

from tfr_assets.errors import TfrError
from tfr_assets.records.example import Frames
from tfr_assets.writing.writers.crew import Channel, Crew, OrderedChannel
from tfr_assets.writing.writers.pieces import End, OpenShards, Piece
from tfr_assets.writing.writers.plan import WritePlan
from tfr_assets.writing.writers.report import Report
from tfr_assets.writing.writers.rows import Rows

Encoded = tuple[Piece | End, list[Frames] | TfrError]


class _Copies:
    """Copies of frames, in memory that is used again: fresh pages cost more than copying."""

    def __init__(self) -> None:
        self._free: list[np.ndarray] = []

    def take(self, frames: Frames) -> Frames:
        """Returns a copy."""
        size = len(frames.data)
        try:
            memory = self._free.pop()
        except IndexError:
            memory = np.empty(0, np.uint8)
        if len(memory) < size:
            memory = np.empty(size + size // 8, np.uint8)
        memory[:size] = np.frombuffer(frames.data, np.uint8)
        return Frames(memory[:size].data, frames.sizes.copy())

    def give_back(self, frames: Frames) -> None:
        """Takes back what `take` returned."""
        memory = frames.data.obj
        assert isinstance(memory, np.ndarray) and isinstance(memory.base, np.ndarray)
        self._free.append(memory.base)


def single_writer_queue(plan: WritePlan, rows: Rows, report: Report, ordered: bool = True) -> None:
    """Writes one file at a time as fast as one thread can write; see `Writer`.

    Args:
        plan: What to write.
        rows: The rows.
        report: Told what becomes of the shards.
        ordered: Whether records keep the order of their rows. Otherwise they come as they are ready, some rows at a
            time, and equal data need not give equal files.
    """
    with Crew() as crew:
        pieces: Channel[tuple[int, Piece | End]] = Channel(crew, 1)
        kind = OrderedChannel if ordered else Channel
        copies = _Copies()
        encoded: Channel[tuple[int, Encoded]] = kind(crew, plan.workers, producers=plan.workers)
        for _ in range(plan.workers):
            crew.start(_encode, plan, pieces, copies, encoded)
        crew.start(_write, plan, encoded, copies, report)
        for numbered in enumerate(rows.pieces()):
            pieces.put(numbered)
        pieces.close()


def _encode(
    plan: WritePlan,
    pieces: Iterable[tuple[int, Piece | End]],
    copies: _Copies,
    encoded: Channel[tuple[int, Encoded]],
) -> None:
    encoder = plan.encoder()
    for number, piece in pieces:
        content: list[Frames] | TfrError = []
        if isinstance(piece, Piece):
            try:
                content = [copies.take(frames) for frames in encoder.encode(piece.batch, piece.first_row)]
            except TfrError as error:
                content = error
        encoded.put((number, (piece, content)))
    encoded.close()


def _write(plan: WritePlan, encoded: Iterable[tuple[int, Encoded]], copies: _Copies, report: Report) -> None:
    with OpenShards(plan, report) as shards:
        for _, (piece, content) in encoded:
            if isinstance(piece, End):
                shards.end(piece)
            elif isinstance(content, TfrError):
                shards.fail(piece.shard, content)
            else:
                shards.append(piece.shard, content)
                for frames in content:
                    copies.give_back(frames)
