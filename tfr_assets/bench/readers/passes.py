"""Passes over all records, timed. Runs in a process of its own, which does nothing else meanwhile."""

import gc
import os
import re
import resource
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfr_assets.bench.process.page_cache import drop_pages
from tfr_assets.bench.process.usage import cpu_seconds_of_descendants, reset_peak
from tfr_assets.bench.readers.measurement import Pass
from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.errors import DamagedFile
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.registry import READERS, reader_named
from tfr_assets.reading.tensors.spec import Tensors, add_delay, simulated_decoding


def read_passes(files: RecordFiles, reader: str, options: BenchOptions, longest: float) -> list[Pass]:
    """Reads the records several times by one pipeline.

    The first pass finds none of the files in the page cache, and is a whole one. What follows finds them there, as far
    as memory goes. Neither TensorFlow's start nor the building of the pipeline is in it.

    Args:
        files: What to read.
        reader: Name of the reader.
        options: What else.
        longest: Seconds after which a warm pass ends where it is: its speed is known by then.

    Raises:
        ConfigError: There is no such reader.
        DamagedFile: A pass failed.
    """
    simulated_decoding.set(options.decode_ms / 1e3)
    dataset = reader_named(reader)(files, ReadOptions(batch_size=options.batch_size))
    if options.decode_ms and READERS[reader].parsed_by == "kernels":  # not `spec.parser`, which simulates decoding
        dataset = dataset.map(_delayed(options.decode_ms / 1e3), tf.data.AUTOTUNE)
    try:
        return timed_passes(dataset, files.paths, options, longest)
    except tf.errors.OpError as error:
        folder = files.paths[0].rpartition(os.sep)[0]
        raise DamagedFile(
            f"reader {reader!r} failed on files in {folder}: {_without_trace(error.message)}. "
            f"`tfr verify {folder}` names file, record and offset"
        ) from None
    finally:
        simulated_decoding.set(0.0)
        del dataset
        gc.collect()  # what belongs to a dataset, such as processes or temporary files, goes with it


def _without_trace(message: str) -> str:
    """Returns what an error of TensorFlow's says, without where in a graph or in a generator it was."""
    says = message.partition("\nTraceback (most recent call last)")[0].partition("\n\t [[{{node")[0]
    return re.sub(r"^\{\{[^}]*\}\}\s*", "", says).strip().rstrip(".")


def timed_passes(dataset: tf.data.Dataset, paths: tuple[str, ...], options: BenchOptions, longest: float) -> list[Pass]:
    """Iterates `options.epochs` times over a dataset whose files are not in the page cache; see `read_passes`."""
    for _ in tf.data.Dataset.range(1):  # starts TensorFlow's threads
        pass
    drop_pages(paths)
    reset_peak()
    step = options.step_ms / 1e3
    return [_timed_pass(dataset, step, longest if epoch else float("inf")) for epoch in range(options.epochs)]


def _timed_pass(dataset: tf.data.Dataset, step: float, longest: float) -> Pass:
    records, first, whole = 0, 0.0, True
    cpu, start = _cpu_seconds(), time.perf_counter()
    batches = iter(dataset)  # to drop it takes its time, up to as long as the pass: TensorFlow's autotuning sleeps
    for batch in batches:
        now = time.perf_counter() - start
        first = first or now
        records += records_of(batch)
        if now > longest:
            whole = False
            break
        if step:
            time.sleep(step)
    return Pass(records, whole, time.perf_counter() - start, first, _cpu_seconds() - cpu)


def _delayed(seconds: float) -> Callable[[Tensors], Tensors]:
    def wait(batch: Tensors) -> Tensors:
        name, first = next(iter(batch.items()))
        size = first.nrows() if isinstance(first, tf.RaggedTensor) else tf.shape(first)[0]
        with tf.control_dependencies([add_delay(tf.fill([size], ""), seconds)]):
            return {**batch, name: tf.nest.map_structure(tf.identity, first, expand_composites=True)}

    return wait


def records_of(batch: dict[str, Any]) -> int:
    """Returns the number of records of a batch."""
    any_feature = next(iter(batch.values()))
    return int(any_feature.nrows() if isinstance(any_feature, tf.RaggedTensor) else any_feature.shape[0])


def _cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + cpu_seconds_of_descendants()
