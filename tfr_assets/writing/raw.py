"""Raw data → inventory: the first step of every dataset."""

from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.sources import Inventory, remove_old_landings, save_slices, take_inventory
from tfr_assets.storage.atomic import refusals
from tfr_assets.units import Progress
from tfr_assets.writing.dataset import Dataset


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
    with refusals(layout.folder):
        inventory = take_inventory(
            dataset.source, layout.raw, progress, lambda schema: derive_spec(schema, {}, dataset.features)
        )
        inventory.save(layout.inventory)
        if dataset.slices:
            save_slices(layout.folder.parent, dataset.slices)
        remove_old_landings(inventory, layout.raw)  # only now: until here a running shard may read the old ones
        return inventory
