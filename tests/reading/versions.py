"""A dataset in two versions that nothing but their values tells apart: as many records, of the same sizes."""

from pathlib import Path

import pyarrow as pa

from tfr_assets.layout import Layout

from .datasets import write_dataset

SHARDS = 4
FIRST = 100_000  # of an id of the first version; all have as many bytes


def table(version: int, rows: int, text: int = 40) -> pa.Table:
    ids = [(version + 1) * FIRST + i for i in range(rows)]
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"{i:0{text}d}" for i in ids]})


def write_version(root: Path, version: int, rows: int = 400, text: int = 40, compression: str = "none") -> Layout:
    return write_dataset(
        table(version, rows, text), root, shards=SHARDS, compression=compression, inventory=f"version {version}"
    )


def version_of(ids: list[int], rows: int) -> int:
    """Which version all ids are of, each of them once and none missing."""
    version = ids[0] // FIRST - 1
    assert sorted(ids) == [(version + 1) * FIRST + i for i in range(rows)]
    return version


def shards_of(layout: Layout) -> list[Path]:
    return [layout.shard_path(f"train-{i:05d}-of-{SHARDS:05d}") for i in range(SHARDS)]
