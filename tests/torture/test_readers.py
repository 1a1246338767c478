"""Readers beside refreshes: all old, all new, or an error; never both, never a record twice or not at all."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tfr_assets.errors import TfrError
from tfr_assets.reading import registry
from tfr_assets.reading.batches import batches
from tfr_assets.reading.read import read
from tfr_assets.writing.write import write

from .settings import SECONDS, cases, choices

ROWS = 100_000
BATCH = 1000
READERS = ["batches", *(name for name in registry.READERS if SECONDS or name in ("vectorized", "sharded", "columnar"))]
_FORKS = multiprocessing.get_context("forkserver")


def version_table(version: int) -> pa.Table:
    """Rows that tell their version."""
    numbers = np.arange(ROWS) + version * ROWS
    return pa.table({"n": numbers, "t": [f"{n:09d}" for n in numbers]})


def _write_versions(folder: Path, seed: str) -> None:
    choose = choices(seed)
    for version in range(1, 10**9):
        write(version_table(version), folder / "few", shards=4, workers=1)
        write(version_table(version), folder / "one.tfrecord", workers=1)
        time.sleep(choose.random() * 0.5)


@contextmanager
def _refreshes(folder: Path, seed: str) -> Iterator[None]:
    process = _FORKS.Process(target=_write_versions, args=(folder, seed), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize("reader", READERS)
def test_a_read_beside_refreshes_is_of_one_version_or_an_error(reader: str, fast_folder: Path) -> None:
    choose = choices(f"refresh {reader}")
    write(version_table(0), fast_folder / "few", shards=4)
    write(version_table(0), fast_folder / "one.tfrecord")
    seen = {"whole": 0, "error": 0}
    with _refreshes(fast_folder, f"writes {reader}"):
        for _ in cases(short=4):
            where = fast_folder / ("one.tfrecord" if reader == "merged" or choose.random() < 0.3 else "few")
            epochs = choose.choice((1, 1, 2))
            pause, at = choose.random(), choose.randrange(ROWS // BATCH)
            numbers: list[np.ndarray] = []
            try:
                for step, batch in enumerate(_open(reader, where, epochs)):
                    numbers.append(np.asarray(batch["n"]))
                    if step == at:
                        time.sleep(pause)
            except (TfrError, tf.errors.OpError):
                seen["error"] += 1
            else:
                seen["whole"] += 1
                assert sum(map(len, numbers)) == epochs * ROWS
            _check(numbers, epochs)
    assert seen["whole"] or seen["error"]


def _open(reader: str, where: Path, epochs: int) -> Iterator[dict[str, Any]]:
    if reader == "batches":
        yield from batches(where, BATCH, epochs=epochs)
    else:
        yield from read(where, BATCH, reader=reader, repeat=epochs)


def _check(parts: list[np.ndarray], epochs: int) -> None:
    numbers = np.concatenate(parts) if parts else np.empty(0, np.int64)
    versions = np.unique(numbers // ROWS)
    assert len(versions) <= 1, f"records of versions {versions} in one read"
    assert np.bincount(numbers % ROWS, minlength=1).max() <= epochs, "a record more often than epochs"
