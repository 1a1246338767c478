"""Slices without raw data: allowed where there is none, refused where it is only out of sight."""

import hashlib

from tfr_assets.errors import SourceError, StaleError
from tfr_assets.sources import Inventory, missing_root, part_with_data
from tfr_assets.writing.dataset import Dataset


def check_really_empty(dataset: Dataset, error: SourceError) -> None:
    """Makes sure that a slice has no raw data because there is none, and not because it cannot be seen.

    Args:
        dataset: The slice.
        error: What said that there is none.

    Raises:
        SourceError: It had rows before; or another part of its source has data; or the folder of all slices is gone.
    """
    assert dataset.sliced
    try:
        rows = Inventory.load(dataset.layout.inventory).rows
    except StaleError:  # it was not made
        rows = 0
    if rows:
        raise SourceError(
            f"{error} Slice {dataset.slice} had {rows:,} rows, now none; remove its folder {dataset.layout.folder} if "
            "that is meant"
        ) from error
    if gone := missing_root(dataset.sliced):
        raise SourceError(f"{error} The folder {gone} of all slices is not there; is it mounted?") from error
    if there := part_with_data(dataset.source):
        raise SourceError(f"{error} But there is data in {there}; a slice is only empty where all parts are") from error


def empty_inventory(dataset: Dataset) -> Inventory:
    """Returns the inventory of a slice without raw data: no rows, with the columns of the nearest slice before it.

    Raises:
        SourceError: No other slice is there, and so nothing shows the columns.
    """
    assert dataset.slices and dataset.slice
    keys = dataset.slice_keys()
    place = keys.index(dataset.slice)
    for key in (*reversed(keys[:place]), *keys[place + 1 :]):
        try:
            other = Inventory.load(dataset.layout_of(key).inventory)
        except StaleError:
            continue
        return Inventory(
            source=dataset.source,
            files=(),
            landed=(),
            file_count=0,
            rows=0,
            splits=dict.fromkeys(dataset.splits, 0),
            bytes=0,
            schema=other.schema,
            listing=other.listing,
            classes=other.classes,
            null_counts=other.null_counts,
            fingerprint=hashlib.sha256(f"empty {other.schema}".encode()).hexdigest(),
        )
    raise SourceError.of_no_data(
        f"slice {dataset.slice} has no raw data, and no other slice shows which columns its files would have; make one "
        "that has some first"
    )
