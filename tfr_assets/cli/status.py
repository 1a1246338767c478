"""How far each dataset is, as its files tell."""

from dataclasses import dataclass, replace
from pathlib import Path

from tfr_assets.errors import StaleError
from tfr_assets.layout import manifest_path
from tfr_assets.sources import Inventory, on_this_machine
from tfr_assets.urls import place_of
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.sizing import as_planned
from tfr_assets.writing.slices.state import why_stale


@dataclass(frozen=True)
class Status:
    """One dataset.

    Attributes:
        name: Its name.
        source: What its raw data is; empty where only what was made of it is looked at.
        rows: Rows in the inventory; None before raw was materialized.
        shards: Number of shards it is cut into.
        shards_written: How many of them lie there.
        merged: Whether the merged file of every split lies there.
        folder: Where all of it lies.
        slices: Number of slices that there are by now; None where raw data does not come in slices.
        slices_made: How many of them were made; rows and shards are those of these.
        stale: Keys of those made that are to be made again, each with the reason; None, where that was not looked for:
            raw files behind URLs are listed only where each slice is asked for.
    """

    name: str
    source: str
    rows: int | None
    shards: int
    shards_written: int
    merged: bool
    folder: str
    slices: int | None = None
    slices_made: int | None = None
    stale: dict[str, str] | None = None


def status_of(dataset: Dataset) -> Status:
    """Looks at a dataset's files, of slices also at the raw ones; reads none of them."""
    if dataset.slices and not dataset.slice:
        return _of_slices(dataset)
    layout = dataset.layout
    try:
        rows = Inventory.load(layout.inventory).rows
    except StaleError:
        rows = None
    dataset = as_planned(dataset) if dataset.slice else dataset
    written = [key for key in dataset.shard_keys if _is_written(layout.shard_path(key))]
    return Status(
        name=dataset.title,
        source=str(dataset.source),
        rows=rows,
        shards=len(dataset.shard_keys),
        shards_written=len(written),
        merged=all(_is_written(layout.merged_path(split)) for split in dataset.splits),
        folder=place_of(layout.folder),
    )


def slices_status(dataset: Dataset) -> list[Status]:
    """Looks at each slice of a dataset that was made; at the dataset itself, if it has none."""
    if not dataset.slices:
        return [status_of(dataset)]
    return [_with_reason(dataset.of_slice(key)) for key in dataset.made_slices()]


def _with_reason(dataset: Dataset) -> Status:
    why = why_stale(dataset)
    return replace(status_of(dataset), stale={str(dataset.slice): why} if why else {})


def _of_slices(dataset: Dataset) -> Status:
    assert dataset.slices
    local = on_this_machine(dataset.source)
    slices = slices_status(dataset) if local else [status_of(dataset.of_slice(key)) for key in dataset.made_slices()]
    return Status(
        name=dataset.name,
        source=str(dataset.source),
        rows=sum(each.rows or 0 for each in slices) if slices else None,
        shards=sum(each.shards for each in slices),
        shards_written=sum(each.shards_written for each in slices),
        merged=bool(slices) and all(each.merged for each in slices),
        folder=place_of(dataset.layout.folder),
        slices=len(dataset.slice_keys()),
        slices_made=len(slices),
        stale={key: why for each in slices for key, why in (each.stale or {}).items()} if local else None,
    )


def _is_written(path: Path) -> bool:
    return path.is_file() and manifest_path(path).is_file()
