"""What all assets of a dataset have in common, in the catalog and in the lineage."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

import dagster as dg

from tfr_assets.components.runs.dead_runs import DATASET_TAG
from tfr_assets.layout import shard_keys
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import CODE_VERSION
from tfr_assets.writing.sizing import as_planned


@dataclass(frozen=True)
class Look:
    """A dataset, and how its assets appear.

    Attributes:
        dataset: The dataset.
        description: What it is; put before the description of each asset.
        owners: E-mail addresses and teams (`team:name`).
        tags: For filtering.
        follows: When what is made from other assets is materialized by itself.
        freshness: After which time without materialization the merged file counts as late.
    """

    dataset: Dataset
    description: str = ""
    owners: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    follows: dg.AutomationCondition[Any] | None = None
    freshness: timedelta | None = None

    @property
    def current(self) -> Dataset:
        """The dataset with the numbers of shards planned last: a step's process may have loaded it before `raw` ran."""
        return as_planned(self.dataset)

    @property
    def partition_keys(self) -> list[str]:
        """Partitions of `shards`: a file each; with `shards: auto` a split each, as the number of files may change."""
        return list(self.dataset.splits) if self.dataset.auto else self.dataset.shard_keys

    def files(self, partition: str) -> list[str]:
        """Returns the keys of the shards that a partition consists of."""
        return shard_keys(partition, self.current.shard_counts[partition]) if self.dataset.auto else [partition]

    def partition_of(self, shard: str) -> str:
        """Returns the partition that a shard belongs to."""
        return shard.partition("-")[0] if self.dataset.auto else shard

    def key(self, part: str) -> dg.AssetKey:
        """Returns the key of the asset `part`."""
        return dg.AssetKey([self.dataset.name, part])

    def select(self, *parts: str) -> dg.AssetSelection:
        """Returns the selection of the assets `parts`."""
        return dg.AssetSelection.assets(*(self.key(part) for part in parts))

    @property
    def made(self) -> tuple[str, ...]:
        """The assets that a refresh makes from `raw`."""
        return ("shards", "merged", "published") if self.dataset.publish else ("shards", "merged")

    def asset(self, part: str, description: str, kinds: set[str], **settings: Any) -> dict[str, Any]:
        """Returns the arguments with which the asset `part` is defined.

        Args:
            part: Last component of its key.
            description: What it is.
            kinds: Icons in the lineage.
            settings: Further arguments.
        """
        return {
            "key": self.key(part),
            "group_name": self.dataset.name,
            "description": f"{self.description}\n\n{description}".strip(),
            "kinds": kinds,
            "owners": list(self.owners),
            "tags": {**self.tags, DATASET_TAG: self.dataset.name},
            **settings,
        }

    @property
    def bench_group(self) -> str:
        """The group of the assets that measure; in the dataset's own, "Materialize all" would launch them, too."""
        return f"{self.dataset.name}_bench"

    @property
    def raw_version(self) -> str:
        """Hash of the settings by which raw data is read: a change makes the inventory stale."""
        return _hash(asdict(self.dataset.source))

    @property
    def shards_version(self) -> str:
        """Hash of the settings that decide over the shards' bytes: a change makes every shard stale."""
        shards = "auto" if self.dataset.auto else self.dataset.shard_counts  # what is planned follows from the raw data
        return _hash([shards, self.dataset.compression, asdict(self.dataset.features)])


def _hash(settings: Any) -> str:
    text = json.dumps([CODE_VERSION, settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
