"""What all assets of a dataset have in common, in the catalog and in the lineage."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import dagster as dg

from tfr_assets.components.runs import DATASET_TAG
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import CODE_VERSION


@dataclass(frozen=True)
class Look:
    """A dataset, and how its assets appear.

    Attributes:
        dataset: The dataset.
        description: What it is; put before the description of each asset.
        owners: E-mail addresses and teams (`team:name`).
        tags: For filtering.
    """

    dataset: Dataset
    description: str = ""
    owners: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    def key(self, part: str) -> dg.AssetKey:
        """Returns the key of the asset `part`."""
        return dg.AssetKey([self.dataset.name, part])

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
    def raw_version(self) -> str:
        """Hash of the settings by which raw data is read: a change makes the inventory stale."""
        return _hash(asdict(self.dataset.source))

    @property
    def shards_version(self) -> str:
        """Hash of the settings that decide over the shards' bytes: a change makes every shard stale."""
        return _hash([self.dataset.shard_counts, self.dataset.compression, asdict(self.dataset.features)])


def _hash(settings: Any) -> str:
    text = json.dumps([CODE_VERSION, settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
