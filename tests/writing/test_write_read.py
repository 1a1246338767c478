"""What `write` writes, TensorFlow and `read` read: the same records, whatever they were made from."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfr_assets
from tests.writing.conftest import WRITERS, table
from tests.writing.written_files import payloads
from tfr_assets.errors import SchemaError, StaleError, WriteError
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.writing.write import write

COMPRESSED = [
    ("sharded_threads", "gzip"),
    ("sharded_processes", "zlib"),
    ("single_writer_queue", "zlib"),
    ("locked", "gzip"),
]


@pytest.fixture(scope="module")
def tf() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    import tensorflow

    return tensorflow


@pytest.mark.parametrize(("writer", "compression"), [*((writer, "none") for writer in WRITERS), *COMPRESSED])
def test_tensorflow_reads_what_every_writer_writes(tf: Any, writer: str, compression: str, tmp_path: Path) -> None:
    data = {"id": np.arange(5000), "text": [f"row {n}" for n in range(5000)]}
    written = write(data, tmp_path / "x", shards=2, writer=WRITERS[writer], compression=compression, workers=2)
    kind = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}[compression]
    records = tf.data.TFRecordDataset(list(map(str, written.paths)), kind)
    spec = {"id": tf.io.FixedLenFeature((), tf.int64), "text": tf.io.FixedLenFeature((), tf.string)}
    found = next(iter(records.batch(10_000).map(lambda batch: tf.io.parse_example(batch, spec))))
    ids = found["id"].numpy().tolist()
    assert (sorted(ids) if writer == "locked" else ids) == list(range(5000))
    assert found["text"].numpy().tolist() == [b"row %d" % n for n in ids]


def test_read_needs_nothing_but_the_path(tf: Any, tmp_path: Path) -> None:
    data = {"n": np.arange(100), "pixels": np.arange(600, dtype=np.uint8).reshape(100, 2, 3)}
    write(data, tmp_path / "digits", shards=3)
    write({"n": np.arange(7)}, tmp_path / "digits", shards=1, split="test")
    found = list(tfr_assets.read(tmp_path / "digits", batch_size=100, split="train"))
    assert len(found) == 1
    assert found[0]["n"].numpy().tolist() == list(range(100))
    assert (found[0]["pixels"].numpy() == data["pixels"]).all()
    write(data, tmp_path / "one.tfrecord")
    assert (next(iter(tfr_assets.read(tmp_path / "one.tfrecord")))["pixels"].numpy() == data["pixels"]).all()


def test_read_refuses_shards_of_two_calls(tf: Any, tmp_path: Path) -> None:
    write(table(40), tmp_path / "x", shards=4)
    bad = pa.table({"n": pa.array([*range(39), 2**63], pa.uint64())})
    with pytest.raises(WriteError, match="1 of 4 shards"):
        write(bad, tmp_path / "x", shards=4)
    with pytest.raises(StaleError, match=r"x-train\.tfrecord-00003-of-00004: another .*write"):
        tfr_assets.read(tmp_path / "x")


def test_messages_of_tensorflow_are_written_as_it_serializes_them(tf: Any, tmp_path: Path) -> None:
    def ints(*values: int) -> Any:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def features(n: int) -> Any:
        return tf.train.Features(feature={"b": ints(n), "a": ints(n, -n)})

    examples = [tf.train.Example(features=features(n)) for n in range(50)]
    steps = tf.train.FeatureLists(feature_list={"s": tf.train.FeatureList(feature=[ints(1), ints(2, 3)])})
    sequences = [tf.train.SequenceExample(context=features(n), feature_lists=steps) for n in range(50)]
    for messages in (examples, sequences):
        written = write(iter(messages), tmp_path / "x", shards=2)
        found = [record for each in payloads(written) for record in each]
        assert found == [message.SerializeToString(deterministic=True) for message in messages]
        assert [type(messages[0]).FromString(record) for record in found] == messages


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_seeds_way_gives_the_same_records_unvouched_for(tf: Any, compression: str, tmp_path: Path) -> None:
    from tfr_assets.bench.writers.seed import seed

    data = {
        "n": [1, None, -3] * 30,
        "x": [0.5, 2.0, None] * 30,
        "t": ["a", None, "ü"] * 30,
        "b": [b"\0", b"", b"\xff" * 300] * 30,
    }
    steps: list[int] = []
    theirs = write(data, tmp_path / "a", shards=3, writer=seed, compression=compression, progress=steps.append)
    ours = write(data, tmp_path / "b", shards=3, compression=compression)
    assert sum(steps) == theirs.records == ours.records == 90
    assert [m.payload_bytes for m in theirs.manifests] == [m.payload_bytes for m in ours.manifests]
    assert theirs.bytes == sum(path.stat().st_size for path in theirs.paths)
    assert [Manifest.load(path) for path in theirs.paths] == [None] * 3
    kind = {"none": "", "gzip": "GZIP"}[compression]
    for one, other in zip(theirs.paths, ours.paths, strict=True):
        records = [list(tf.data.TFRecordDataset(str(path), kind).as_numpy_iterator()) for path in (one, other)]
        parsed = [[tf.train.Example.FromString(record) for record in each] for each in records]
        assert parsed[0] == parsed[1] and len(parsed[0]) == 30


def test_the_seeds_way_knows_dates_and_decimals(tf: Any, tmp_path: Path) -> None:
    from tfr_assets.bench.writers.seed import seed

    counts = [1, None, -3]
    types = [
        pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("ns"),
        pa.timestamp("s", "Europe/Paris"), pa.duration("ms"),
    ]  # fmt: skip
    columns = {str(kind): pa.array(counts, pa.int32() if kind.bit_width == 32 else pa.int64()) for kind in types}
    columns = {name: column.view(kind) for (name, column), kind in zip(columns.items(), types, strict=True)}
    data = pa.table({**columns, "d": pa.array(["1.50", None, "-2.00"]).cast(pa.decimal128(10, 2))})
    theirs, ours = write(data, tmp_path / "a.tfrecord", writer=seed), write(data, tmp_path / "b.tfrecord")
    parsed = [[tf.train.Example.FromString(each) for each in payloads(written)[0]] for written in (theirs, ours)]
    assert parsed[0] == parsed[1]


def test_the_seeds_way_knows_lists_and_dropped_columns_and_names_what_it_does_not_know(tf: Any, tmp_path: Path) -> None:
    from tfr_assets.bench.writers.seed import seed

    options = FeatureOptions(drop=("a/b",))
    data = table(50)
    theirs = write(data, tmp_path / "a.tfrecord", writer=seed, features=options)
    ours = write(data, tmp_path / "b.tfrecord", features=options)
    parsed = [[tf.train.Example.FromString(each) for each in payloads(written)[0]] for written in (theirs, ours)]
    for one, other in zip(*parsed, strict=True):
        del one.features.feature["l"], other.features.feature["l"]  # an empty list: of no kind, or of the column's
        assert one == other
    with pytest.raises(SchemaError, match="column 'a/b': the code of most tutorials"):
        write(table(50), tmp_path / "c.tfrecord", writer=seed)


def test_tensorflow_is_not_needed_for_writing(tmp_path: Path) -> None:
    code = f"""
import sys, tfr_assets
tfr_assets.write({{"a": [1]}}, {str(tmp_path / "x.tfrecord")!r})
print({{"tensorflow", "dagster"}} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"
