"""How many shards a split should have: files of 100 to 200 MB, and enough of them for parallel readers.

bytes of a sample's records ÷ its rows × rows of the split → bytes of the split
large data     a file for each 150 MB
less           ten files, so that readers can share them
little         as many files as have 10 MB each, at least one: opening small files costs more than it gains
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tfr_assets.layout import Layout
from tfr_assets.sources import Inventory, read_rows
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.sealed import seal, unseal
from tfr_assets.units import IDEAL_FILE
from tfr_assets.writing.dataset import MAX_SHARDS, Dataset
from tfr_assets.writing.plan import plan_features

ENOUGH_FILES = 10
_WORTH_A_FILE = 10_000_000  # bytes: of little data, fewer get no file of their own
_SAMPLES, _SAMPLE_ROWS = 8, 64
_SAMPLE_BYTES = 4_000_000  # after which no more of a sample is read: of large files, some are enough


@dataclass(frozen=True)
class SplitSize:
    """What a split is expected to become.

    Attributes:
        split: Its name.
        rows: Number of records.
        bytes: Size of all its files together, before compression; estimated from a sample of its records.
        shards: Number of files.
    """

    split: str
    rows: int
    bytes: int
    shards: int


def shard_count(size: int) -> int:
    """Returns how many files `size` bytes should be cut into."""
    by_size = -(-size // IDEAL_FILE)
    for_readers = min(ENOUGH_FILES, size // _WORTH_A_FILE)
    return min(max(by_size, for_readers, 1), MAX_SHARDS)


def as_planned(dataset: Dataset) -> Dataset:
    """Returns the dataset, with `auto` of as many shards as were planned last."""
    planned = load_planned(dataset.layout, dataset.splits) if dataset.auto else None
    return replace(dataset, shards=planned) if planned else dataset


def plan_sizes(dataset: Dataset, inventory: Inventory) -> list[SplitSize]:
    """Estimates what every split will become, and saves the numbers of shards where they are planned.

    Args:
        dataset: The dataset.
        inventory: Its inventory.

    Raises:
        SchemaError, ConfigError, SourceError, WriteError: As planning and writing shards would.
    """
    sizes = split_sizes(dataset, inventory)
    if dataset.auto:
        save_planned(dataset.layout, sizes)
    return sizes


def split_sizes(dataset: Dataset, inventory: Inventory) -> list[SplitSize]:
    """Estimates what every split will become, by encoding a few of its records.

    Args:
        dataset: The dataset; with `auto`, its numbers of shards are not asked for but planned.
        inventory: Its inventory.

    Raises:
        SchemaError, ConfigError, SourceError: As planning and writing shards would.
    """
    first, sizes = 0, []
    for split, rows in inventory.splits.items():
        estimated = _estimate(dataset, inventory, first, rows)
        shards = shard_count(estimated) if dataset.auto else dataset.shard_counts[split]
        sizes.append(SplitSize(split, rows, estimated, shards))
        first += rows
    return sizes


def _estimate(dataset: Dataset, inventory: Inventory, first: int, rows: int) -> int:
    from tfr_assets.records.examples.encoder import ExampleEncoder

    features = plan_features(dataset, inventory)
    encoder = ExampleEncoder(features, dataset.features.cast)
    taken = size = 0
    for start in sorted({first + rows * sample // _SAMPLES for sample in range(_SAMPLES)} if rows else ()):
        stop = min(start + _SAMPLE_ROWS, first + rows)
        row, before = start, size
        for batch in read_rows(inventory, start, stop):
            for frames in encoder.encode(batch, row):
                taken, size = taken + len(frames.sizes), size + len(frames.data)
            row += batch.num_rows
            if size - before > _SAMPLE_BYTES:
                break
    return size * rows // taken if taken else 0


def save_planned(layout: Layout, sizes: list[SplitSize]) -> None:
    """Saves the numbers of shards, for the next load of the dataset's definition."""
    document = {size.split: size.shards for size in sizes}
    write_atomically(layout.planned, seal({"shards": document}))


def load_planned(layout: Layout, splits: tuple[str, ...]) -> Mapping[str, int] | None:
    """Returns the planned numbers of shards; None if there are none for these splits, or none that can be believed."""
    try:
        planned = (unseal(layout.planned.read_bytes()) or {}).get("shards")
    except OSError:
        return None
    if not isinstance(planned, dict) or set(planned) != set(splits):
        return None
    return planned if all(isinstance(count, int) and count > 0 for count in planned.values()) else None
