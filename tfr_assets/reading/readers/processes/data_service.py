"""tf.data service: reading and parsing in processes of their own, the way it outgrows one machine.

    dispatcher: which worker reads which range ─┐
    worker: ranges → batch → parse ─────────────┼→ this process: batches of the size asked for → prefetch
    worker: …                                  ─┘

A range goes to the next worker that is free, so that every record comes once in every epoch, in no particular order.
tf.data service alone promises only that none comes twice: when a worker dies, its range is lost, and training
waits for it without end. So the processes are watched while batches come, and the records are counted.
"""

import dataclasses
import time
import weakref
from collections.abc import Callable, Iterator

import tensorflow as tf

from tfr_assets.errors import SourceError
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.generators import from_generator
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.readers.parsing import parse_batch
from tfr_assets.reading.readers.processes.start import Process, close_all
from tfr_assets.reading.readers.serialized_records import (
    assert_batch_count,
    chunks_in_turn,
    rebatch,
    refuse,
    verify_batches,
)
from tfr_assets.reading.tensors.media import decoder
from tfr_assets.reading.tensors.spec import Tensors

_MODULE = "tfr_assets.reading.readers.processes.service_process"
_LOOK = 0.2  # seconds between looks at the processes
_BATCH, _LOOKED, _END = range(3)


def data_service(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads and parses in `options.workers` processes of a tf.data service, which live as long as the dataset.

    The workers run TensorFlow's own reader, which reads no remote files and leaves no damaged records out. With
    `on_error="raise"`, this process verifies all files first, and then, with every batch, that they are still the ones
    that it verified.

    Raises:
        SourceError: A process did not start.
    """
    inner = dataclasses.replace(options, drop_remainder=False, decode={}, on_error="unchecked")
    parse = parse_batch(files, inner)
    serialized = rebatch(chunks_in_turn(files, inner, options.cycle_length, options.calls), inner, None)
    parsed = serialized.map(parse, options.calls, deterministic=False)
    processes = [Process.start(_MODULE, "dispatch")] + [Process.start(_MODULE, "work") for _ in range(options.workers)]
    served = parsed.apply(
        tf.data.experimental.service.distribute(
            tf.data.experimental.service.ShardingPolicy.DYNAMIC, _connect(processes)
        )
    )
    found = verify_batches(_watch(served, lambda: parse(tf.zeros((0,), tf.string)), processes), files, options)
    found = assert_batch_count(found.rebatch(options.batch_size, options.drop_remainder), files, options)
    if options.decode:
        found = found.map(decoder(options.decode), options.calls, options.deterministic)
    dataset = found.prefetch(tf.data.AUTOTUNE)
    weakref.finalize(dataset, close_all, processes)  # also when Python ends; datasets made of this one keep it alive
    return dataset


def _connect(processes: list[Process]) -> str:
    """Tells the workers of the dispatcher, and returns its address when all are ready."""
    dispatcher, *workers = processes
    try:
        address: str = dispatcher.connection.recv()
        for worker in workers:
            worker.connection.send(address)
        for worker in workers:
            worker.connection.recv()
    except (EOFError, BrokenPipeError, ConnectionResetError) as error:
        close_all(processes)
        raise SourceError("reader 'data_service': a process did not start; see its messages") from error
    return address


def _watch(served: tf.data.Dataset, nothing: Callable[[], Tensors], processes: list[Process]) -> tf.data.Dataset:
    """Returns what is served, and an error as soon as one of the processes is gone.

    Two branches race: one gives batches and then a mark of their end, the other looks at the processes now and then.

    Args:
        served: Batches.
        nothing: Gives a batch of no records.
        processes: All of the service.
    """

    def look() -> Iterator[str]:
        while True:
            gone = [process.describe_end() for process in processes if not process.is_alive()]
            yield f"tf.data service: {gone[0]}; records are lost, read again" if gone else ""
            time.sleep(_LOOK)

    looks = from_generator(look, tf.TensorSpec((), tf.string))
    end = tf.data.Dataset.from_tensors(_END)
    batches = served.map(_mark(_BATCH)).concatenate(end.map(lambda end: (nothing(), end)))
    # its elements are passed on, because what loops without giving any cannot be cancelled
    watching = looks.map(lambda problem: (nothing(), refuse(_LOOKED, problem)))

    def branch(takes: tf.Tensor) -> tf.data.Dataset:
        return batches.take(takes[0]).concatenate(watching.take(takes[1]))

    all_of_one = tf.data.Dataset.from_tensor_slices(tf.constant([[-1, 0], [0, -1]], tf.int64))
    both = all_of_one.interleave(branch, cycle_length=2, num_parallel_calls=2, deterministic=False)
    until_end = both.take_while(lambda _, mark: tf.not_equal(mark, _END))
    return until_end.filter(lambda _, mark: tf.equal(mark, _BATCH)).map(lambda batch, _: batch)


def _mark(mark: int) -> Callable[[Tensors], tuple[Tensors, int]]:
    return lambda batch: (batch, mark)
