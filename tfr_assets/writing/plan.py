"""The sharding plan: which rows go into which file, and what determines each file's bytes.

inventory's schema, options → feature spec
inventory's splits, shards  → shards, balanced to within one record in each split
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from tfr_assets.errors import StaleError
from tfr_assets.layout import Shard, assign_rows
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.sources import Inventory
from tfr_assets.writing.dataset import Dataset

CODE_VERSION = "1"
"""Raise it when equal rows and settings give other bytes than before: every shard is then written again."""


@dataclass(frozen=True)
class ShardingPlan:
    """What to write into which file.

    Attributes:
        dataset: The dataset.
        inventory_fingerprint: Of the inventory whose rows are written.
        features: The feature spec of all records.
        shards: The files and their rows.
    """

    dataset: Dataset
    inventory_fingerprint: str
    features: FeatureSpec
    shards: tuple[Shard, ...]

    @cached_property
    def _by_key(self) -> dict[str, Shard]:
        return {shard.key: shard for shard in self.shards}

    def shard(self, key: str) -> Shard:
        """Returns the shard of a partition key."""
        return self._by_key[key]

    def of_split(self, split: str) -> tuple[Shard, ...]:
        """Returns the shards of a split, in order."""
        return tuple(shard for shard in self.shards if shard.split == split)

    def made_from(self, shard: Shard) -> dict[str, Any]:
        """Returns all that determines a shard's bytes, as its manifest records it."""
        return {
            "inventory": self.inventory_fingerprint,
            "rows": [shard.start, shard.stop],
            "features": self.features.fingerprint,
            "cast": dict(self.dataset.features.cast),
            "compression": self.dataset.compression,
            "code_version": CODE_VERSION,
        }


def merged_from(plan: ShardingPlan, digests: Mapping[str, str]) -> dict[str, Any]:
    """Returns all that determines a merged file's bytes, as its manifest records it.

    Args:
        plan: The plan of the shards.
        digests: Digests of its split's shards by name, in order.
    """
    return {
        "shards": dict(digests),
        "features": plan.features.fingerprint,
        "compression": plan.dataset.compression,
    }


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Returns which entries of what a file was made from are not those that are wanted; nothing if all are."""
    if found == wanted:
        return ""
    return " and ".join(name for name in wanted if found.get(name) != wanted[name]) or "version of this program"


def load_inventory(dataset: Dataset) -> Inventory:
    """Returns the dataset's saved inventory.

    Raises:
        StaleError: There is none, or it was taken of another source than the dataset now names.
    """
    inventory = Inventory.load(dataset.layout.inventory)
    # as JSON has them: tuples became lists
    old, new = (
        json.loads(json.dumps({**asdict(source), "storage_options": {}}))
        for source in (inventory.source, dataset.source)
    )
    if old != new:
        changed = ", ".join(f"{name} (was {old[name]!r}, is {new[name]!r})" for name in new if old[name] != new[name])
        raise StaleError(
            f"dataset {dataset.title!r}: the source settings changed since raw was materialized: {changed}. "
            "Materialize raw again"
        )
    return replace(inventory, source=dataset.source)  # with the storage options, which are not saved


def plan_shards(dataset: Dataset) -> ShardingPlan:
    """Returns the plan for the dataset's saved inventory. Writes nothing.

    Raises:
        StaleError: Raw must be materialized first, or again.
        SchemaError: A column cannot become a feature.
        ConfigError: The feature options do not fit the columns.
    """
    inventory = load_inventory(dataset)
    if set(inventory.splits) != set(dataset.splits):
        raise StaleError(f"{dataset.layout.inventory}: holds other splits than the YAML says. Materialize raw again.")
    return ShardingPlan(
        dataset=dataset,
        inventory_fingerprint=inventory.fingerprint,
        features=plan_features(dataset, inventory),
        shards=tuple(_assigned(inventory.splits, dataset.shard_counts)),
    )


def plan_features(dataset: Dataset, inventory: Inventory) -> FeatureSpec:
    """Returns the features that an inventory's rows become.

    Raises:
        SchemaError: A column cannot become a feature.
        ConfigError: The feature options do not fit the columns.
    """
    return derive_spec(inventory.schema, inventory.null_counts, dataset.features, inventory.classes)


def _assigned(rows: Mapping[str, int], counts: Mapping[str, int]) -> Iterator[Shard]:
    first = 0
    for split, count in counts.items():
        yield from assign_rows(rows[split], count, split, first)
        first += rows[split]
