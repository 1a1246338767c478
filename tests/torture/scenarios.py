"""What is tortured: each way in which the project changes files, on little data, in one process.

A scenario prepares a folder, then acts on it. Acting again, after whatever went wrong, must complete it.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tfr_assets.bench.writers.measured import MEASURED
from tfr_assets.reading.batches import batches
from tfr_assets.sources import Source
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.merged import merge_shards
from tfr_assets.writing.plan import plan_shards
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.shard import finish_shards, write_shard
from tfr_assets.writing.write import write

ROWS = 60
Rows = list[dict[str, Any]]


def table(version: int) -> pa.Table:
    """Some rows; those of two versions differ, but not in number or size."""
    numbers = [1000 * (version + 1) + row for row in range(ROWS)]
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "t": pa.array([f"row {n}" for n in numbers]),
            "l": pa.array([[n / 2] * (n % 3) for n in numbers], pa.list_(pa.float32())),
        }
    )


def dataset(root: Path, shards: int = 2, source: str = "raw.parquet") -> Dataset:
    """The dataset that most scenarios write."""
    return Dataset(name="sample", source=Source(path=str(root / source)), shards=shards, root=root / "data")


def put_raw(root: Path, version: int) -> None:
    """Writes the raw data, which no scenario changes."""
    pq.write_table(table(version), root / "raw.parquet", row_group_size=20)
    (root / "raw.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in table(version).to_pylist()))


def refresh(made: Dataset, merge: bool = False) -> None:
    """Raw data to shards, as a run does it."""
    materialize_raw(made)
    plan = plan_shards(made)
    for shard in plan.shards:
        write_shard(plan, shard)
    finish_shards(plan)
    if merge:
        merge_shards(made)


def write_folder(root: Path, version: int, shards: int | None = 3, writer: str = "serial", workers: int = 1) -> None:
    """`tfr_assets.write`, into a folder or one file."""
    target = root / "data" / ("sample" if shards else "sample.tfrecord")
    write(table(version), target, shards=shards, writer=MEASURED[writer], workers=workers)


def refresh_in_threads(made: Dataset) -> None:
    """As `refresh`, with a thread for each shard; a run has a process for each."""
    materialize_raw(made)
    plan = plan_shards(made)
    with ThreadPoolExecutor(len(plan.shards)) as pool:
        list(pool.map(lambda shard: write_shard(plan, shard), plan.shards))
    finish_shards(plan)


@dataclass(frozen=True)
class Scenario:
    """A way of changing files below `root/data`.

    Attributes:
        prepare: Makes what is there before.
        act: Changes it.
        where: What readers read, below `root/data`.
        before: The version of the rows there before; None: there are none.
        files: Which files are read, of a dataset that has shards and a merged one.
        again: What completes it after a crash, where that is not `act`, which would take too long each time.
    """

    prepare: Callable[[Path], None]
    act: Callable[[Path], None]
    where: str = "sample"
    before: int | None = 0
    files: str | None = None
    again: Callable[[Path], None] | None = None


def _first(root: Path) -> None:
    put_raw(root, 1)


def _old(root: Path) -> None:
    put_raw(root, 0)
    refresh(dataset(root), merge=True)
    put_raw(root, 1)


def _old_four(root: Path) -> None:
    put_raw(root, 0)
    refresh(dataset(root, 4))
    put_raw(root, 1)


def _landed_before(root: Path) -> None:
    put_raw(root, 0)
    refresh(dataset(root, source="raw.jsonl"))
    put_raw(root, 1)


def _unmerged(root: Path) -> None:
    _old(root)
    refresh(dataset(root))


SCENARIOS: dict[str, Scenario] = {
    "first shards": Scenario(_first, lambda root: refresh(dataset(root, 1)), before=None),
    "replaced shards": Scenario(_old, lambda root: refresh(dataset(root)), files="shards"),
    "another number of shards": Scenario(_old_four, lambda root: refresh(dataset(root, 2))),
    "a landing replaced": Scenario(_landed_before, lambda root: refresh(dataset(root, source="raw.jsonl"))),
    "a merge replaced": Scenario(_unmerged, lambda root: merge_shards(dataset(root)) and None, files="merged"),
    "one file written": Scenario(lambda root: None, lambda root: write_folder(root, 1, None), "sample.tfrecord", None),
    "one file replaced": Scenario(
        lambda root: write_folder(root, 0, None), lambda root: write_folder(root, 1, None), "sample.tfrecord"
    ),
    "a folder replaced": Scenario(lambda root: write_folder(root, 0), lambda root: write_folder(root, 1)),
    "a folder of another number": Scenario(
        lambda root: write_folder(root, 0, 3), lambda root: write_folder(root, 1, 2)
    ),
}  # fmt: skip

PARALLEL: dict[str, Scenario] = {
    "shards replaced by threads": Scenario(_old, lambda root: refresh_in_threads(dataset(root)), files="shards"),
    "a folder replaced by threads": Scenario(
        lambda root: write_folder(root, 0), lambda root: write_folder(root, 1, 3, "sharded_threads", 3)
    ),
    "a folder replaced by processes": Scenario(
        lambda root: write_folder(root, 0), lambda root: write_folder(root, 1, 3, "sharded_processes", 2),
        again=lambda root: write_folder(root, 1, 3),
    ),
    "one file replaced through a queue": Scenario(
        lambda root: write_folder(root, 0, None),
        lambda root: write_folder(root, 1, None, "single_writer_queue", 3), "sample.tfrecord",
    ),
    "one file replaced behind a lock": Scenario(
        lambda root: write_folder(root, 0, None),
        lambda root: write_folder(root, 1, None, "locked", 3), "sample.tfrecord",
    ),
}  # fmt: skip


def act(name: str, root: Path) -> None:
    """Runs a scenario's second half; can be sent to another process."""
    (SCENARIOS | PARALLEL)[name].act(root)


def read_rows(where: Path, files: str | None = None) -> Rows:
    """Reads a folder or file as `tfr_assets.batches` gives it."""
    found = list(batches(where, into="arrow", files=files, workers=1))  # type: ignore[arg-type]
    return pa.Table.from_batches(found).to_pylist()
