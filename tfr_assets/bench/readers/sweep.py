"""Speed over cycle length and over batch size. Runs in a process of its own."""

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import tensorflow as tf

from tfr_assets.bench.readers.passes import records_of
from tfr_assets.errors import DamagedFile
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.registry import reader_named

_ROUNDS = 2
_LONGEST_PASS = 0.3  # seconds: tens of batches; there are some 35 passes


def sweep(files: RecordFiles, reader: str, option: str, values: Sequence[int]) -> list[tuple[float, float]]:
    """Returns how many records a second a reader gives with each value of an option.

    The values take turns, twice, after a first batch of each that does not count. No pass takes longer than a third of
    a second, or than one batch.

    Args:
        files: What to read.
        reader: Name of the reader.
        option: Name of a field of `ReadOptions`.
        values: What to set it to.

    Returns:
        Pairs (value, records a second).

    Raises:
        DamagedFile: A pass failed.
    """
    build = reader_named(reader)
    settings: dict[int, dict[str, Any]] = {value: {option: value} for value in values}
    made = {value: build(files, replace(ReadOptions(), **setting)) for value, setting in settings.items()}
    speeds: dict[int, list[float]] = {value: [] for value in values}
    try:
        for dataset in made.values():  # compiles, traces and opens what later passes find done
            next(iter(dataset))
        for _ in range(_ROUNDS):
            for value, dataset in made.items():
                speeds[value].append(_speed(dataset))
    except tf.errors.OpError as error:
        raise DamagedFile(f"reader {reader!r} with {option}={value} failed: {error.message}") from None
    return [(value, median(of_value)) for value, of_value in speeds.items()]


def _speed(dataset: tf.data.Dataset) -> float:
    records, start = 0, time.perf_counter()
    for batch in dataset:
        records += records_of(batch)
        if time.perf_counter() - start > _LONGEST_PASS:
            break
    return records / (time.perf_counter() - start)
