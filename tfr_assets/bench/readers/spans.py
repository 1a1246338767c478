"""Who does what when: spans of opening, reading, mapping and training, recorded in real runs of small pipelines.

The pipelines are those of the guide to tf.data's performance, over the first records of the files. What records a span
is Python and costs time itself, so spans show how work overlaps, and not how fast a reader is.
"""

import gzip
import io
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import tensorflow as tf

from tfr_assets.bench.readers.timeline import FILES, RECORDS, Timeline
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.tensors.spec import parser

_BATCH = 8
_EPOCHS = 2
_ENOUGH_BYTES = 64 << 20  # of a zlib stream, for its first records


def record_spans(files: RecordFiles, step_ms: float) -> list[Timeline]:
    """Runs each of the pipelines for two epochs over the first records of the first files.

    Args:
        files: Where the records are.
        step_ms: What training takes after each batch.
    """
    recorder = _Recorder(replace(files, paths=files.paths[:FILES]))
    recorder.run("warming up", _naive, 0.0)
    return [recorder.run(name, build, step_ms / 1e3) for name, build in _PIPELINES.items()]


class _Recorder:
    """Makes datasets whose parts note when they work."""

    def __init__(self, files: RecordFiles) -> None:
        self._files = files
        signature = [tf.TensorSpec((None,), tf.string)]
        self._parse = tf.function(parser(files.features), input_signature=signature).get_concrete_function()
        self._spans: dict[str, list[tuple[float, float]]] = {}

    @property
    def paths(self) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(list(self._files.paths))

    def read(self, path: tf.Tensor) -> tf.data.Dataset:
        """Returns the first records of a file."""
        return tf.data.Dataset.from_generator(self._read, args=(path,), output_signature=tf.TensorSpec((), tf.string))

    def map_one(self, record: tf.Tensor) -> tf.Tensor:
        """Parses a record; gives only that it was done."""
        return tf.ensure_shape(tf.numpy_function(self._map, [record[tf.newaxis]], tf.int64, stateful=True), (1,))[0]

    def map_batch(self, records: tf.Tensor) -> tf.Tensor:
        """Parses a batch of records."""
        return tf.ensure_shape(tf.numpy_function(self._map, [records], tf.int64, stateful=True), (None,))

    def run(self, name: str, build: "Callable[[_Recorder], tf.data.Dataset]", step: float) -> Timeline:
        """Records two epochs of a pipeline."""
        options = tf.data.Options()
        options.experimental_optimization.apply_default_optimizations = False  # they prefetch, and naive were not naive
        dataset = (
            build(self).with_options(options).repeat(_EPOCHS)
        )  # of one iterator: making another takes longer than all that is recorded
        self._spans = {lane: [] for lane in ("open", "read", "map", "train")}
        for _ in dataset:
            self._timed("train", time.sleep, step)
        start = min(begin for spans in self._spans.values() for begin, _ in spans)
        lanes = {
            lane: tuple(sorted((begin - start, end - start) for begin, end in spans))
            for lane, spans in self._spans.items()
        }
        steps = lanes["train"]
        return Timeline(name, lanes, steps[len(steps) // _EPOCHS - 1][1])

    def _read(self, path: bytes) -> Iterator[bytes]:
        file = self._timed("open", _open, path.decode(), self._files.compression)
        with file:
            for _ in range(RECORDS):
                if not (record := self._timed("read", _read_record, file)):
                    return
                yield record

    def _map(self, records: np.ndarray) -> np.ndarray:
        self._timed("map", self._parse, tf.constant(records))
        return np.zeros(len(records), np.int64)

    def _timed(self, lane: str, function: Callable[..., Any], *arguments: Any) -> Any:
        begin = time.perf_counter()
        result = function(*arguments)
        self._spans[lane].append((begin, time.perf_counter()))
        return result


def _open(path: str, compression: str) -> IO[bytes]:
    if compression == "gzip":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if compression == "zlib":
        with Path(path).open("rb") as file:
            return io.BytesIO(zlib.decompressobj().decompress(file.read(_ENOUGH_BYTES), _ENOUGH_BYTES))
    return Path(path).open("rb")


def _read_record(file: IO[bytes]) -> bytes:
    """Returns the next record; nothing at the end. What is measured here was verified before."""
    header = file.read(12)
    return file.read(int.from_bytes(header[:8], "little") + 4)[:-4] if header else b""


def _naive(recorder: _Recorder) -> tf.data.Dataset:
    return recorder.paths.flat_map(recorder.read).map(recorder.map_one).batch(_BATCH)


def _interleave(recorder: _Recorder) -> tf.data.Dataset:
    records = recorder.paths.interleave(recorder.read, cycle_length=FILES, num_parallel_calls=FILES)
    return records.map(recorder.map_one).batch(_BATCH)


_PIPELINES: dict[str, Callable[[_Recorder], tf.data.Dataset]] = {
    "naive": _naive,
    "prefetch": lambda recorder: _naive(recorder).prefetch(tf.data.AUTOTUNE),
    "interleave": _interleave,
    "parallel_map": lambda recorder: (
        recorder.paths.flat_map(recorder.read)
        .map(recorder.map_one, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(_BATCH)
        .prefetch(tf.data.AUTOTUNE)
    ),
    "cache_memory": lambda recorder: _naive(recorder).cache(),
    "vectorized": lambda recorder: recorder.paths.flat_map(recorder.read).batch(_BATCH).map(recorder.map_batch),
}
