"""Raw data → inventory: the first step of every dataset."""

from tfr_assets.errors import SourceError
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.sources import Inventory, remove_old_landings, save_slices, take_inventory
from tfr_assets.storage.atomic import refusals
from tfr_assets.units import Progress
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.slices.empty import check_really_empty, empty_inventory
from tfr_assets.writing.slices.state import check_own_files, raw_state, save_raw_state

_MAY_BE_EMPTY = "If a slice may have none, add `empty: allow` to `slices`."


def materialize_raw(dataset: Dataset, progress: Progress | None = None) -> Inventory:
    """Takes the inventory of a dataset's raw data, lands it where needed, and saves both.

    Args:
        dataset: The dataset.
        progress: Called with what is done and of how much; see `sources.take_inventory`.

    Raises:
        SourceError: Raw data is missing or unreadable.
        SchemaError: Rows would have to be landed, and a column of them cannot become a feature.
        ConfigError: Rows would have to be landed, whose columns the feature options do not fit.
        WriteError: It cannot be landed or saved.
    """
    layout = dataset.layout
    dataset.catch_up()
    with refusals(layout.folder):
        state = raw_state(dataset) if dataset.slice else ""  # before, so that a change meanwhile is noticed later
        inventory = _take(dataset, progress)
        inventory.save(layout.inventory)
        if dataset.slices and dataset.slice:
            save_slices(layout.folder.parent, dataset.slices)
            save_raw_state(dataset, state)
        remove_old_landings(inventory, layout.raw)  # only now: until here a running shard may read the old ones
        return inventory


def _take(dataset: Dataset, progress: Progress | None) -> Inventory:
    slices = dataset.slices if dataset.slice else None
    try:
        if slices:
            check_own_files(dataset)
        inventory = take_inventory(
            dataset.source, dataset.layout.raw, progress, lambda schema: derive_spec(schema, {}, dataset.features)
        )
    except SourceError as error:
        if slices is None or not error.no_data:
            raise
        if slices.empty == "allow":
            check_really_empty(dataset, error)
            return empty_inventory(dataset)
        raise SourceError.of_no_data(f"{error} {_MAY_BE_EMPTY}") from error
    if slices is None or inventory.rows:
        return inventory
    if slices.empty == "refuse":
        raise SourceError.of_no_data(f"{dataset.source}: has no rows. {_MAY_BE_EMPTY}")
    return empty_inventory(dataset)  # its own schema says little: columns of a CSV without rows have no types
