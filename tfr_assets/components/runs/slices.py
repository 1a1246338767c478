"""What runs know of slices: a run works on one of them, which its tags name."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from tfr_assets.components.runs.dead_runs import DATASET_TAG
from tfr_assets.sources import Slices
from tfr_assets.writing.dataset import Dataset

SLICES_TAG = "tfr/slices"  # of an asset or job of a dataset whose raw data comes in slices: their kind
_PARTITION = "dagster/partition"
_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
_CRON = {"hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * {day}", "monthly": "0 0 1 * *"}


def partitions_of(slices: Slices, name: str) -> dg.PartitionsDefinition[Any]:
    """Returns the slices of the dataset `name` as Dagster's partitions, with the same keys.

    Of slices that grow, the instance keeps them: see `register`.
    """
    if slices.grows:
        return dg.DynamicPartitionsDefinition(name=_dynamic(name))
    if slices.values is not None:
        return dg.StaticPartitionsDefinition(list(slices.values))
    cron = _CRON[slices.kind].format(day=slices.begin.isoweekday() % 7)
    return dg.TimeWindowPartitionsDefinition(
        start=slices.begin.strftime(slices.format), fmt=slices.format, cron_schedule=cron, timezone="UTC"
    )


def register(dataset: Dataset, keys: Sequence[str], instance: dg.DagsterInstance) -> list[str]:
    """Tells the instance of slices that grow, so that the UI shows them and runs can be launched.

    Returns:
        Those that it did not know yet.
    """
    if not dataset.slices or not dataset.slices.grows:
        return []
    known = set(instance.get_dynamic_partitions(_dynamic(dataset.name)))
    if new := [key for key in keys if key not in known]:
        instance.add_dynamic_partitions(_dynamic(dataset.name), new)
    return new


def _dynamic(name: str) -> str:
    return f"{name}_slices"


def slice_of(tags: Mapping[str, str]) -> str | None:
    """Returns the slice that a run's tags name; None: they name none, or several."""
    first, last = (tags.get(name) for name in _RANGE)
    return tags.get(_PARTITION) or (first if first == last else None)


def dataset_tags(dataset: Dataset) -> dict[str, str]:
    """Returns the tags of a dataset's assets and jobs."""
    return {DATASET_TAG: dataset.name} | ({SLICES_TAG: dataset.slices.kind} if dataset.slices else {})


def queue_tag(tags: Mapping[str, str], run: Mapping[str, str]) -> str:
    """Returns the value of a run's `tfr/dataset`: the queue lets one run through for each.

    Args:
        tags: Of its assets or its job.
        run: Of the run.
    """
    key = slice_of(run) if SLICES_TAG in tags else None
    return run_tag(tags[DATASET_TAG].partition("/")[0], key) if key else tags[DATASET_TAG]


def run_tag(name: str, key: str | None) -> str:
    """Returns the value of the tag `tfr/dataset` of a run that works on a dataset, or on a slice of it."""
    return f"{name}/{key}" if key else name
