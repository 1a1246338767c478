"""`sharded_processes`: as `sharded_threads`, but each worker is a process, to which its rows are sent through a pipe.

A process takes the plan and its rows, as an Arrow stream, from standard input, and tells on standard output what
becomes of the shards. When either side ends early, the other finds its pipe closed: no process is left behind, and no
shard that has not come to its end.
"""

import fcntl
import pickle
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO, Any

import pyarrow as pa

from tfr_assets.errors import TfrError, WriteError
from tfr_assets.layout import index_path
from tfr_assets.processes import how_it_ended
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.atomic import remove_abandoned
from tfr_assets.writing.writers.outcome import NothingLeftError, Report
from tfr_assets.writing.writers.pieces import End, Piece, write_pieces
from tfr_assets.writing.writers.process import fresh_process, messages
from tfr_assets.writing.writers.rows import Rows
from tfr_assets.writing.writers.sharded_threads import write_shards
from tfr_assets.writing.writers.thread_group import ThreadGroup
from tfr_assets.writing.writers.write_plan import WritePlan

_PIPE_BYTES = 1 << 20


def sharded_processes(plan: WritePlan, rows: Rows, report: Report) -> None:
    """Writes shards in parallel, each in one process; see `WriteFunction`."""
    write_shards(plan, rows, report, _write_in_process)


def _write_in_process(group: ThreadGroup, plan: WritePlan, pieces: Iterable[Piece | End], report: Report) -> None:
    with fresh_process(__name__) as process:
        with suppress(OSError):  # more than an unprivileged user may have
            fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        group.start(_listen, process.stdout, report)
        with suppress(BrokenPipeError):  # it has ended early, and its exit code tells why
            _send(plan, pieces, process.stdin)
            process.stdin.close()
        code = process.popen.wait()
    if code:
        for path in plan.paths:  # others hold theirs as long as they live
            remove_abandoned(path)
            remove_abandoned(index_path(path))
        hint = "The system may have run out of memory: use fewer workers" if code == -signal.SIGKILL else "Run it again"
        raise WriteError(
            f"a worker process {how_it_ended(code)}; shards in {plan.paths[0].parent} that were finished before are "
            f"whole, and nothing was left of the others. {hint}, or use the writer 'sharded_threads'"
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
    with stream, suppress(EOFError):
        while True:
            method, arguments = pickle.load(stream)
            getattr(report, method)(*arguments)


class _SentReport:
    """A report whose calls are made in the caller's process."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def wrote(self, records: int) -> None:
        self._send("wrote", records)

    def finished(self, shard: int, manifest: Manifest) -> None:
        self._send("finished", shard, manifest)

    def failed(self, shard: int, error: TfrError) -> None:
        self._send("failed", shard, type(error)(str(error)))  # without its cause, which may be of any type

    def _send(self, method: str, *arguments: Any) -> None:
        try:
            pickle.dump((method, arguments), self._stream)
            self._stream.flush()
        except BrokenPipeError as error:  # the caller is gone; no fault of a shard's file
            raise NothingLeftError from error


def main() -> None:
    """Is the worker: writes what it is sent; what is not finished when the input ends is removed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(NothingLeftError, EOFError):  # the caller is gone
        write_pieces(pickle.load(sys.stdin.buffer), _received(sys.stdin.buffer), _SentReport(messages()))


def _received(stream: IO[bytes]) -> Iterator[Piece | End]:
    try:
        with pa.ipc.open_stream(stream) as batches:
            while True:
                batch, metadata = batches.read_next_batch_with_custom_metadata()
                shard = int(metadata["shard"])
                yield (
                    End(shard, int(metadata["records"]))
                    if "records" in metadata
                    else Piece(shard, int(metadata["first_row"]), batch)
                )
    except (StopIteration, pa.ArrowInvalid, OSError):  # cut off, where the caller has stopped; the ends decide
        return
