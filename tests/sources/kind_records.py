"""Raw data of any kind, said as in YAML → the records that are made of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from tfr_assets.sources import Inventory, Splits, parse_source, read_rows, take_inventory


def inventory_of(said: Any, folder: Path, splits: Splits | None = None) -> Inventory:
    """Returns the inventory of raw data, landed below a folder."""
    return take_inventory(replace(parse_source(said), splits=splits), folder / uuid4().hex)


def records_of(inventory: Inventory) -> pa.Table:
    """Returns all records."""
    return pa.Table.from_batches(read_rows(inventory, 0, inventory.rows), inventory.schema)


def records(said: Any, folder: Path) -> list[dict[str, Any]]:
    """Returns the records that are made of raw data."""
    return records_of(inventory_of(said, folder)).to_pylist()
