"""`sharded_threads`: every worker writes shards of its own. Encoding holds no GIL, so threads run at once."""

from collections.abc import Callable, Iterable, Iterator

from tfr_assets.writing.writers.outcome import Report
from tfr_assets.writing.writers.pieces import End, Piece, write_pieces
from tfr_assets.writing.writers.rows import Rows, StreamRows, TableRows
from tfr_assets.writing.writers.thread_group import Channel, ThreadGroup
from tfr_assets.writing.writers.write_plan import WritePlan

_WAITING = 2  # pieces per worker, so that it need not wait while the next is drawn

Work = Callable[[ThreadGroup, WritePlan, Iterable[Piece | End], Report], None]


def sharded_threads(plan: WritePlan, rows: Rows, report: Report) -> None:
    """Writes shards in parallel, each in one thread; see `WriteFunction`."""
    write_shards(plan, rows, report, _write_pieces)


def _write_pieces(_: ThreadGroup, plan: WritePlan, pieces: Iterable[Piece | End], report: Report) -> None:
    write_pieces(plan, pieces, report)


def write_shards(plan: WritePlan, rows: Rows, report: Report, work: Work) -> None:
    """Gives each worker shards of its own.

    Args:
        plan: What to write.
        rows: Where they are all there, a worker takes the next shard when it is done with one; otherwise each has its
            share of the shards, and is handed what comes for them.
        report: Is called with what happens to the shards.
        work: What a worker does with the pieces of its shards, in a thread of its own.
    """
    workers = range(min(plan.workers, len(plan.paths)))
    with ThreadGroup() as group:
        if isinstance(rows, StreamRows):
            inboxes: list[Channel[Piece | End]] = [Channel(group, _WAITING) for _ in workers]
            for inbox in inboxes:
                group.start(work, group, plan, inbox, report)
            for piece in rows.pieces():
                inboxes[piece.shard % len(inboxes)].put(piece)
            for inbox in inboxes:
                inbox.close()
            return
        shards: Channel[int] = Channel(group, len(plan.paths))
        for shard in range(len(plan.paths)):
            shards.put(shard)
        shards.close()
        for _ in workers:
            group.start(work, group, plan, group.watched(_pieces_of(rows, shards)), report)


def _pieces_of(rows: TableRows, shards: Iterable[int]) -> Iterator[Piece | End]:
    for shard in shards:
        yield from rows.pieces_of(shard)
