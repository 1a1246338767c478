"""A worker of `sharded_processes`: takes a plan and pieces from standard input, tells its report on standard output."""

import os
import pickle
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

import pyarrow as pa

from tfr_assets.errors import TfrError
from tfr_assets.records.manifest import Manifest
from tfr_assets.writing.writers.pieces import End, Piece, write_pieces


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
        pickle.dump((method, arguments), self._stream)
        self._stream.flush()


def main() -> None:
    """Writes what it is sent; what is not finished when the input ends is removed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    messages = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed shall not get between the messages
    with suppress(BrokenPipeError, EOFError):  # the caller is gone, and nobody is left to tell
        write_pieces(pickle.load(sys.stdin.buffer), _pieces(sys.stdin.buffer), _SentReport(messages))


def _pieces(stream: IO[bytes]) -> Iterator[Piece | End]:
    try:
        with pa.ipc.open_stream(stream) as batches:
            while True:
                batch, told = batches.read_next_batch_with_custom_metadata()
                shard = int(told["shard"])
                yield (
                    End(shard, int(told["records"]))
                    if "records" in told
                    else Piece(shard, int(told["first_row"]), batch)
                )
    except (StopIteration, pa.ArrowInvalid, OSError):  # cut off, where the caller has stopped; the ends decide
        return
