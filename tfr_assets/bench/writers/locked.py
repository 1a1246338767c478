"""`locked`: several threads encode, and each writes what it has encoded while it holds the one lock.

The thread that gets the lock first writes first: records come in any order. It shows what the queue of
`single_writer_queue` gains.
"""

import threading
from collections.abc import Iterable

from tfr_assets.errors import TfrError
from tfr_assets.writing.writers.outcome import Report
from tfr_assets.writing.writers.pieces import End, OpenShards, Piece
from tfr_assets.writing.writers.rows import Rows
from tfr_assets.writing.writers.thread_group import Channel, ThreadGroup
from tfr_assets.writing.writers.write_plan import WritePlan


def locked(plan: WritePlan, rows: Rows, report: Report) -> None:
    """Writes one file at a time, with all workers taking turns; see `WriteFunction`."""
    lock = threading.Lock()
    with OpenShards(plan, report) as shards, ThreadGroup() as group:
        pieces: Channel[Piece | End] = Channel(group, plan.workers)
        for _ in range(plan.workers):
            group.start(_encode_and_write, plan, pieces, lock, shards)
        for piece in rows.pieces():
            pieces.put(piece)
        pieces.close()


def _encode_and_write(plan: WritePlan, pieces: Iterable[Piece | End], lock: threading.Lock, shards: OpenShards) -> None:
    encoder = plan.encoder()
    for piece in pieces:
        if isinstance(piece, End):
            with lock:
                shards.end(piece)
            continue
        try:
            for frames in encoder.encode(piece.batch, piece.first_row):
                with lock:
                    shards.append(piece.shard, [frames])
        except (TfrError, MemoryError) as error:
            with lock:
                shards.fail(piece.shard, error)
