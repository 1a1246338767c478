"""Shards as other people's programs read them."""

import json
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfr_assets.layout import index_path
from tfr_assets.writing.shard import ShardWritten

from ..records.reference import payloads_of
from .conftest import ROWS, MakeDataset, table, write_all_shards


@pytest.fixture
def shards(make: MakeDataset) -> list[ShardWritten]:
    """Four shards of rows, numbered by their feature `n`."""
    return write_all_shards(make())[1]


def payloads(shard: ShardWritten) -> list[bytes]:
    return payloads_of(shard.path.read_bytes())


# In a process of its own, because the package's protobuf messages bear the names of TensorFlow's, which the other tests
# load. Reads [[data, index, part], …] and gives the rows of each.
_LOAD = """
import json, pickle, sys
import numpy
from tfrecord.reader import tfrecord_loader

numpy.random.seed(1)  # chooses the record to begin with, where no part is asked for
rows = [list(tfrecord_loader(data, index, None, part)) for data, index, part in json.load(sys.stdin)]
pickle.dump(rows, sys.stdout.buffer)
"""
_TORCH = _LOAD.replace(
    "tfrecord.reader import tfrecord_loader", "tfrecord.torch.dataset import TFRecordDataset"
).replace("tfrecord_loader(data, index, None, part)", "TFRecordDataset(data, index)")

Part = tuple[int, int] | None
Requests = list[tuple[Path, Part]]


def load(requests: Requests, code: str = _LOAD) -> list[list[dict[str, Any]]]:
    """The rows of shards, or of parts of them (number, of how many), as the package `tfrecord` reads them."""
    said = json.dumps([(str(path), str(index_path(path)), part) for path, part in requests])
    done = subprocess.run([sys.executable, "-c", code], input=said.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    rows: list[list[dict[str, Any]]] = pickle.loads(done.stdout)
    return rows


@pytest.mark.skipif(find_spec("tfrecord") is None, reason="the package `tfrecord` is not installed")
class TestTfrecordPackage:
    """The package `tfrecord`, with which PyTorch reads; it finds records by our index, as NVIDIA DALI does."""

    def test_it_reads_what_was_written(self, shards: list[ShardWritten]) -> None:
        read = [row for rows in load([(shard.path, (0, 1)) for shard in shards]) for row in rows]
        for found, row in zip(read, table().to_pylist(), strict=True):
            assert found["n"] == [row["n"]]
            assert found.get("t") == (None if row["t"] is None else row["t"].encode())
            np.testing.assert_array_equal(found["l"], np.float32(row["l"]))
            assert found.get("a/b/d/e") == (None if row["a/b"] is None else row["a/b"]["d/e"].encode())

    def test_workers_share_a_shard_by_its_index(self, shards: list[ShardWritten]) -> None:
        for workers in (2, 3, 7, ROWS // 4):
            parts = [(shard.path, (worker, workers)) for shard in shards for worker in range(workers)]
            assert [int(row["n"][0]) for rows in load(parts) for row in rows] == list(range(ROWS))

    def test_from_a_random_record_on_it_reads_each_once(self, shards: list[ShardWritten]) -> None:
        found = [[int(row["n"][0]) for row in rows] for rows in load([(shard.path, None) for shard in shards])]
        assert any(numbers != sorted(numbers) for numbers in found)
        assert sorted(number for numbers in found for number in numbers) == list(range(ROWS))

    @pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
    def test_its_pytorch_dataset(self, shards: list[ShardWritten]) -> None:
        found = load([(shard.path, None) for shard in shards], _TORCH)
        assert sorted(int(row["n"][0]) for rows in found for row in rows) == list(range(ROWS))

    def test_its_own_tool_makes_the_same_index(self, shards: list[ShardWritten], tmp_path: Path) -> None:
        for shard in shards:
            tool = [sys.executable, "-m", "tfrecord.tools.tfrecord2idx"]
            subprocess.run([*tool, shard.path, tmp_path / "idx"], check=True)
            assert (tmp_path / "idx").read_bytes() == index_path(shard.path).read_bytes()

    def test_records_of_more_than_its_buffer(self, make: MakeDataset, raw: Path) -> None:
        sizes = [0, 3_000_000, 17, 1_500_000]
        values = [bytes([n]) * size for n, size in enumerate(sizes)]
        pq.write_table(pa.table({"b": pa.array(values, pa.binary())}), raw)
        (shard,) = write_all_shards(make(shards=1))[1]
        assert [row["b"] for rows in load([(shard.path, (part, 4)) for part in range(4)]) for row in rows] == values


class TestGrain:
    """Grain, with which JAX reads."""

    @pytest.fixture
    def grain(self) -> Any:
        return pytest.importorskip("grain", reason="the package `grain` is not installed")

    def test_it_gives_the_records(self, shards: list[ShardWritten], grain: Any) -> None:
        for shard in shards:
            assert list(grain.experimental.TFRecordIterDataset(str(shard.path))) == payloads(shard)

    def test_it_goes_on_from_a_checkpoint(self, shards: list[ShardWritten], grain: Any) -> None:
        records = iter(grain.experimental.TFRecordIterDataset(str(shards[0].path)))
        head = [next(records) for _ in range(10)]
        again = iter(grain.experimental.TFRecordIterDataset(str(shards[0].path)))
        again.set_state(records.get_state())
        assert head + list(again) == payloads(shards[0])
