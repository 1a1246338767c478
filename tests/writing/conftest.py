from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.writing.written_files import own_children, own_threads
from tfr_assets.bench.writers.measured import MEASURED, SEED
from tfr_assets.sources import Source
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import ShardingPlan, plan_shards
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.shard import ShardWritten, finish_shards, write_shard
from tfr_assets.writing.writers import rows as rows_module

ROWS = 103
WRITERS = {name: writer for name, writer in MEASURED.items() if name != SEED}  # all that are ours
MakeDataset = Callable[..., Dataset]


def table(rows: int = ROWS, first: int = 0) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int32()),
            "t": pa.array([None if n % 5 == 0 else f"row {n}" for n in numbers], pa.string()),
            "l": pa.array([[n / 2] * (n % 4) for n in numbers], pa.list_(pa.float64())),
            "a/b": pa.array([None if n % 7 == 0 else {"c": n, "d/e": str(n)} for n in numbers],
                            pa.struct([("c", pa.int64()), ("d/e", pa.string())])),
        }
    )  # fmt: skip


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Raw data: a Parquet file of several row groups."""
    path = tmp_path / "raw.parquet"
    pq.write_table(table(), path, row_group_size=10)
    return path


@pytest.fixture
def make(tmp_path: Path, raw: Path) -> MakeDataset:
    """Makes a dataset of the raw data; settings may be changed."""

    def make_dataset(**changes: Any) -> Dataset:
        settings = {"name": "sample", "source": Source(path=str(raw)), "shards": 4, "root": tmp_path / "data"}
        return Dataset(**{**settings, **changes})

    return make_dataset


def write_all_shards(dataset: Dataset) -> tuple[ShardingPlan, list[ShardWritten]]:
    """Everything from raw data to shards."""
    materialize_raw(dataset)
    plan = plan_shards(dataset)
    written = [write_shard(plan, shard) for shard in plan.shards]
    finish_shards(plan)
    return plan, written


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder, with their content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def nothing_is_left_running() -> Iterator[None]:
    """Fails where a writer leaves a thread or a process behind."""
    yield
    assert own_threads() == []
    assert own_children() == []


@pytest.fixture
def little_look_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets even little data that comes bit by bit be too much to look at all of it."""
    monkeypatch.setattr(rows_module, "_LOOK_AHEAD", 1)
