"""`sharded_processes`: as `sharded_threads`, but each worker is a process, to which its rows are sent through a pipe.

A process takes its rows as an Arrow stream and tells what becomes of the shards. When either side ends early, the other
finds its pipe closed: nobody is left behind, and no shard that has not come to its end.
"""

import contextlib
import fcntl
import pickle
from collections.abc import Iterable
from signal import Signals
from typing import IO

import pyarrow as pa

from tfr_assets.errors import WriteError
from tfr_assets.writing.writers.crew import Crew
from tfr_assets.writing.writers.pieces import End, Piece
from tfr_assets.writing.writers.plan import WritePlan
from tfr_assets.writing.writers.process import fresh_process
from tfr_assets.writing.writers.report import Report
from tfr_assets.writing.writers.rows import Rows
from tfr_assets.writing.writers.sharded_threads import write_shards

_PIPE_BYTES = 1 << 20


def sharded_processes(plan: WritePlan, rows: Rows, report: Report) -> None:
    """Writes shards in parallel, each in one process; see `Writer`."""
    write_shards(plan, rows, report, _write_in_process)


def _write_in_process(crew: Crew, plan: WritePlan, pieces: Iterable[Piece | End], report: Report) -> None:
    with fresh_process("tfr_assets.writing.writers.worker") as process:
        with contextlib.suppress(OSError):  # more than an unprivileged user may have
            fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        crew.start(_listen, process.stdout, report)
        with contextlib.suppress(BrokenPipeError):  # it has ended early, and its exit code tells why
            _send(plan, pieces, process.stdin)
            process.stdin.close()
        code = process.popen.wait()
    if code:
        how = f"was killed by signal {-code} ({Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        hint = "The system may have run out of memory: use fewer workers" if code == -9 else "Run it again"
        raise WriteError(
            f"a worker process {how}; shards in {plan.paths[0].parent} that were finished before are whole, and "
            f"nothing was left of the others. {hint}, or use the writer 'sharded_threads'"
        )


def _send(plan: WritePlan, pieces: Iterable[Piece | End], stream: IO[bytes]) -> None:
    pickle.dump(plan, stream)
    nothing = pa.RecordBatch.from_pylist([], plan.schema)
    with pa.ipc.new_stream(stream, plan.schema) as batches:
        for piece in pieces:
            if isinstance(piece, End):
                batches.write_batch(nothing, {"shard": str(piece.shard), "records": str(piece.records)})
            else:
                batches.write_batch(piece.batch, {"shard": str(piece.shard), "first_row": str(piece.first_row)})


def _listen(stream: IO[bytes], report: Report) -> None:
    with stream, contextlib.suppress(EOFError):
        while True:
            method, arguments = pickle.load(stream)
            getattr(report, method)(*arguments)
