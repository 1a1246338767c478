"""`serial`: one thread, one shard after another. What the other writers are measured against."""

from tfr_assets.writing.writers.outcome import Report
from tfr_assets.writing.writers.pieces import write_pieces
from tfr_assets.writing.writers.rows import Rows
from tfr_assets.writing.writers.write_plan import WritePlan


def serial(plan: WritePlan, rows: Rows, report: Report) -> None:
    """Writes all shards in the caller's thread; see `WriteFunction`."""
    write_pieces(plan, rows.pieces(), report)
