"""How far each dataset is, as its files tell."""

from dataclasses import dataclass
from pathlib import Path

from tfr_assets.errors import StaleError
from tfr_assets.layout import manifest_path
from tfr_assets.sources import Inventory
from tfr_assets.writing.dataset import Dataset


@dataclass(frozen=True)
class Status:
    """One dataset.

    Attributes:
        name: Its name.
        source: What its raw data is.
        rows: Rows in the inventory; None before raw was materialized.
        shards: Number of shards it is cut into.
        shards_written: How many of them lie there.
        merged: Whether the merged file of every split lies there.
        folder: Where all of it lies.
    """

    name: str
    source: str
    rows: int | None
    shards: int
    shards_written: int
    merged: bool
    folder: str


def status_of(dataset: Dataset) -> Status:
    """Looks at a dataset's files; reads none of them."""
    layout = dataset.layout
    try:
        rows = Inventory.load(layout.inventory).rows
    except StaleError:
        rows = None
    written = [key for key in dataset.shard_keys if _is_written(layout.shard_path(key))]
    return Status(
        name=dataset.name,
        source=str(dataset.source),
        rows=rows,
        shards=len(dataset.shard_keys),
        shards_written=len(written),
        merged=all(_is_written(layout.merged_path(split)) for split in dataset.splits),
        folder=str(layout.folder),
    )


def _is_written(path: Path) -> bool:
    return path.is_file() and manifest_path(path).is_file()
