"""What all assets of a dataset have in common, in the catalog and in the lineage."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any

import dagster as dg

from tfr_assets.components.runs.dead_runs import DATASET_TAG
from tfr_assets.components.runs.slices import dataset_tags, partitions_of, run_tag, slice_of
from tfr_assets.errors import ConfigError, SourceError
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
    def partitions(self) -> dg.PartitionsDefinition[Any]:
        """How `shards` is partitioned; and all else, where raw data comes in slices: see `slices`."""
        return self.slices or dg.StaticPartitionsDefinition(self.partition_keys)

    @property
    def slices(self) -> dg.PartitionsDefinition[Any] | None:
        """The slices that raw data comes in, as partitions of every asset; None: it does not.

        All assets are partitioned alike because a job has one kind of partitions, and so a run makes all of a slice.
        """
        return partitions_of(self.dataset.slices, self.dataset.name) if self.dataset.slices else None

    def backfills(self) -> dg.BackfillPolicy:
        """Returns in how many runs partitions are made: all shards in one; slices in one each, which fails alone."""
        return dg.BackfillPolicy.multi_run() if self.dataset.slices else dg.BackfillPolicy.single_run()

    def in_run(self, run: dg.DagsterRun) -> "Look":
        """Returns how that appears which a run works on: the dataset, or one slice of it.

        Raises:
            dg.Failure: The run was launched without a slice, or for one that is there no more.
        """
        slices = self.dataset.slices
        if slices is None or self.dataset.slice:
            return self
        key = slice_of(run.tags)
        if key is None:
            raise dg.Failure(
                "this run was started without a slice, or for several at once. In the UI, choose slices when you "
                "launch it: each gets a run of its own; on the command line, `tfr run NAME --slices …` does so",
                allow_retries=False,
            )
        try:
            self.dataset.choose_slices(key)
        except (ConfigError, SourceError) as error:
            raise dg.Failure(f"{error}. Reload the definitions and launch again", allow_retries=False) from None
        return self.of_slice(key)

    def of_slice(self, key: str) -> "Look":
        """Returns how one slice appears."""
        return replace(self, dataset=self.dataset.of_slice(key))

    @property
    def run_tags(self) -> dict[str, str]:
        """The tag by which runs that work on it are found, and which the queue lets one run through for."""
        return {DATASET_TAG: run_tag(self.dataset.name, self.dataset.slice)}

    @property
    def by_file(self) -> bool:
        """Whether a partition of `shards` is one file; otherwise it has several, whose number may change."""
        return not (self.dataset.auto or self.dataset.slices)

    @property
    def partition(self) -> str | None:
        """The partition of `raw` and `merged` that this is: the slice; None: they have none."""
        return self.dataset.slice

    @property
    def current(self) -> Dataset:
        """The dataset with the numbers of shards planned last: a step's process may have loaded it before `raw` ran."""
        return as_planned(self.dataset)

    @property
    def partition_keys(self) -> list[str]:
        """Partitions of `shards`: a file each; with `shards: auto` a split each, as the number of files may change.

        Where raw data comes in slices: a slice each, with the files of all splits.
        """
        if self.dataset.slices:
            return [self.dataset.slice] if self.dataset.slice else self.dataset.slice_keys()
        return list(self.dataset.splits) if self.dataset.auto else self.dataset.shard_keys

    def files(self, partition: str) -> list[str]:
        """Returns the keys of the shards that a partition consists of."""
        if self.dataset.slices:
            return self.current.shard_keys
        return shard_keys(partition, self.current.shard_counts[partition]) if self.dataset.auto else [partition]

    def partition_of(self, shard: str) -> str:
        """Returns the partition that a shard belongs to."""
        if self.dataset.slice:
            return self.dataset.slice
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
            "tags": {**self.tags, **dataset_tags(self.dataset)},
            **settings,
        }

    @property
    def bench_group(self) -> str:
        """The group of the assets that measure; in the dataset's own, "Materialize all" would launch them, too."""
        return f"{self.dataset.name}_bench"

    @property
    def raw_version(self) -> str:
        """Hash of the settings by which raw data is read: a change makes the inventory stale."""
        return _hash(asdict(replace(self.dataset.source, files=None)))  # which files there are is no setting

    @property
    def shards_version(self) -> str:
        """Hash of the settings that decide over the shards' bytes: a change makes every shard stale."""
        shards = "auto" if self.dataset.auto else self.dataset.shard_counts  # what is planned follows from the raw data
        return _hash([shards, self.dataset.compression, asdict(self.dataset.features)])


def _hash(settings: Any) -> str:
    text = json.dumps([CODE_VERSION, settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
