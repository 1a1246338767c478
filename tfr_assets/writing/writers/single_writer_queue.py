"""`single_writer_queue`: threads encode, one writes what they hand to it through a bounded queue.

Of several workers, one is the thread that writes. What is handed over is the encoder's own memory, which is used again
when it is written: nothing is copied, and there is only as much as waits.
"""

from collections.abc import Iterable

from tfr_assets.errors import TfrError
from tfr_assets.records.arrow.buffers import Pool
from tfr_assets.records.examples.encoder import Frames
from tfr_assets.writing.writers.outcome import Report
from tfr_assets.writing.writers.pieces import End, OpenShards, Piece
from tfr_assets.writing.writers.rows import Rows
from tfr_assets.writing.writers.thread_group import Channel, OrderedChannel, ThreadGroup
from tfr_assets.writing.writers.write_plan import WritePlan

_WAITING = 2 << 20  # bytes per worker that may wait to be written: more would not stay in the cache

Encoded = tuple[Piece | End, Frames | TfrError | MemoryError | None]


def single_writer_queue(plan: WritePlan, rows: Rows, report: Report) -> None:
    """Writes one file at a time as fast as one thread can write; see `WriteFunction`.

    Where the plan asks for no order, records come as they are ready, and equal data need not give equal files.

    Args:
        plan: What to write.
        rows: The rows.
        report: Is called with what happens to the shards.
    """
    encoders = max(1, plan.workers - 1)  # a thread more than there are processors would only be in the others' way
    with ThreadGroup() as group:
        pieces: Channel[tuple[int, Piece | End]] = Channel(group, 1)
        kind = OrderedChannel if plan.ordered else Channel
        encoded: Channel[tuple[int, Encoded]] = kind(group, plan.workers * _WAITING, encoders, _bytes)
        memory = Pool()
        for _ in range(encoders):
            group.start(_encode, plan, pieces, memory, encoded)
        group.start(_write, plan, encoded, report)
        for numbered in enumerate(rows.pieces()):
            pieces.put(numbered)
        pieces.close()


def _encode(
    plan: WritePlan,
    pieces: Iterable[tuple[int, Piece | End]],
    memory: Pool,
    encoded: Channel[tuple[int, Encoded]],
) -> None:
    encoder = plan.encoder(memory)
    for number, piece in pieces:
        if isinstance(piece, End):
            encoded.put((number, (piece, None)))
        else:
            try:
                for frames in encoder.encode(piece.batch, piece.first_row):
                    encoded.put((number, (piece, frames)))
            except (TfrError, MemoryError) as error:
                encoded.put((number, (piece, error)))
        encoded.finish(number)
    encoded.close()


def _write(plan: WritePlan, encoded: Iterable[tuple[int, Encoded]], report: Report) -> None:
    with OpenShards(plan, report) as shards:
        for _, (piece, content) in encoded:
            if isinstance(piece, End):
                shards.end(piece)
            elif isinstance(content, TfrError | MemoryError):
                shards.fail(piece.shard, content)
            elif content is not None:
                shards.append(piece.shard, [content])


def _bytes(numbered: tuple[int, Encoded]) -> int:
    content = numbered[1][1]
    return len(content.data) if isinstance(content, Frames) else 0
