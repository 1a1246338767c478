"""Worker processes read the files, and this process only takes records out of their queues.

    ranges of files → message queue of a worker ─→ reads, checks, splits ─→ output queue → batch → parse → prefetch

Every worker has two queues of its own, both bounded: it is given a range ahead, no more, and waits when its records are
not taken. Its errors are raised here; one that is killed is an error, too; and none outlives this process.
"""

import random
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import cast

import numpy as np
import tensorflow as tf

from tfr_assets.errors import DamagedFile, SourceError, TfrError
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.locate.shares import plan_files
from tfr_assets.reading.native.skipped_count import Tally
from tfr_assets.reading.readers.framing import strings
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.readers.processes.queue_worker import DONE, FAILED, RECORDS
from tfr_assets.reading.readers.processes.start import Process, close_all
from tfr_assets.reading.readers.serialized_records import checked_chunks, rebatch
from tfr_assets.reading.readers.stepwise import parse_in_parallel
from tfr_assets.records.frames.segments import Range

_AHEAD = 2  # ranges that a worker has at most: one that it reads, and the next


def file_queue(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads in `options.workers` processes, which live as long as the dataset and need no TensorFlow.

    Records come as they are ready; with a seed, workers take turns, so that the order is always the same. Damage is
    always an error that names file, record and byte, or left out.
    """
    ranges = plan_files(files, options.shard)
    count = sum(wanted.records for wanted in ranges)
    pool = _Pool(options.on_error == "skip", min(options.workers, len(ranges)))
    rng = random.Random(options.seed)

    def epoch() -> Iterator[tuple[np.ndarray, str]]:
        order = rng.sample(ranges, len(ranges)) if options.shuffle else ranges
        return _epoch(order, pool, count, in_turn=options.seed is not None)

    found = rebatch(checked_chunks(epoch), options, None if pool.skips else count)
    dataset = parse_in_parallel(found, files, options)
    weakref.finalize(dataset, pool.close)  # also when Python ends; datasets made of this one keep it alive
    return dataset


class _Pool:
    """Worker processes, started in advance and lent to one epoch at a time."""

    def __init__(self, skips: bool, size: int) -> None:
        self.skips = skips
        self._size = size
        self._idle = [self._start() for _ in range(size)]

    @contextmanager
    def lend(self) -> Iterator[dict[Connection, Process]]:
        """Lends the workers for the block. Those of a block that ends early are in the middle of a file, and end."""
        alive = [worker for _ in range(self._size) if self._idle and (worker := self._idle.pop()).is_alive()]
        workers = alive + [self._start() for _ in range(self._size - len(alive))]
        try:
            yield {worker.connection: worker for worker in workers}
        except BaseException:
            close_all(workers)
            raise
        self._idle += workers

    def close(self) -> None:
        """Ends the workers that are idle."""
        close_all(self._idle)

    def _start(self) -> Process:
        return Process.start("tfr_assets.reading.readers.processes.queue_worker", "serve", self.skips)


def _epoch(ranges: list[Range], pool: _Pool, count: int, in_turn: bool) -> Iterator[tuple[np.ndarray, str]]:
    """Yields records, or what went wrong, as `checked_chunks` takes them."""
    tally = Tally()
    try:
        with pool.lend() as workers:
            yield from _receive(deque(ranges), workers, tally, in_turn)
    except TfrError as error:
        yield np.empty(0, object), str(error)
    tally.warn(count)


def _receive(
    ranges: deque[Range], workers: dict[Connection, Process], tally: Tally, in_turn: bool
) -> Iterator[tuple[np.ndarray, str]]:
    given: dict[Connection, deque[Range]] = {connection: deque() for connection in workers}
    while ranges or any(given.values()):
        for connection, its in given.items():
            while ranges and len(its) < _AHEAD:
                its.append(ranges.popleft())
                with suppress(BrokenPipeError):  # that it is gone shows when it should answer
                    connection.send(its[-1])
        busy = [connection for connection, its in given.items() if its]
        for connection in busy if in_turn else cast(list[Connection], wait(busy)):
            try:
                kind, content = connection.recv()
            except (EOFError, OSError) as error:  # it was killed, perhaps in the middle of an answer
                raise SourceError(
                    f"{workers[connection].describe_end()} while it read {given[connection][0].path}"
                ) from error
            if kind == FAILED:
                raise DamagedFile(content)
            if kind == RECORDS:
                yield strings(content), ""
            elif kind == DONE:
                given[connection].popleft()
                tally.add(content)
