"""A dataset as its YAML describes it, without Dagster."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tfr_assets.errors import ConfigError
from tfr_assets.layout import MAX_SHARDS, Layout, data_root, shard_keys
from tfr_assets.records.frames.compression import COMPRESSIONS
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.sources import ONLY_SPLIT, Slices, Source, has_slices
from tfr_assets.storage.atomic import refusals
from tfr_assets.storage.mirror import catch_up


@dataclass(frozen=True)
class Dataset:
    """Raw data and how it becomes TFRecord.

    Attributes:
        name: The dataset's name; folder, files and assets carry it.
        source: Where the raw data is.
        shards: Number of files of every split, or by split; each file is one partition.
        compression: `none`, `gzip` or `zlib`.
        features: What to do with which column.
        root: Folder of all datasets; None: `data_root(project)`, asked when needed.
        project: Folder of the project that it belongs to; None: the current one.
        auto: Whether `shards` is planned from the inventory (see `writing.sizing`); here it is what was planned last.
        publish: URL of a folder in an object store, to which a refresh copies what readers need; None: to none.
        slices: The slices that its raw data comes in, each of which is a dataset of its own; None: it does not.
        slice: Key of the slice that this is; None: it is all of them, or has none.
        sliced: Of a slice, the source of all slices.

    Raises:
        ConfigError: A setting cannot work.
    """

    name: str
    source: Source
    shards: int | Mapping[str, int] = 16
    compression: str = "none"
    features: FeatureOptions = field(default_factory=FeatureOptions)
    root: Path | None = None
    auto: bool = False
    project: Path | None = None
    publish: str | None = None
    slices: Slices | None = None
    slice: str | None = None
    sliced: Source | None = None

    def __post_init__(self) -> None:
        if self.slices and not self.slice:
            self.slices.check_source(self.source)
        elif not self.slices and has_slices(self.source):
            raise ConfigError(
                "slices: missing, but the source has a {slice}; add a line such as slices: {daily: 2026-01-01}"
            )
        if isinstance(self.shards, Mapping) and set(self.shards) != set(self.splits):
            raise ConfigError(
                f"shards: numbers are given for {', '.join(self.shards)}, but the splits are {', '.join(self.splits)}"
            )
        for split, count in self.shard_counts.items():
            if not 1 <= count <= MAX_SHARDS:
                raise ConfigError(f"shards: {count}, for split {split!r}, is not between 1 and {MAX_SHARDS}")
        if self.compression not in COMPRESSIONS:
            raise ConfigError(f"compression: {self.compression!r} is none of {', '.join(COMPRESSIONS)}")

    @property
    def layout(self) -> Layout:
        """Where the dataset's files lie; of a slice, its own."""
        whole = Layout.of(self.name, self.root or data_root(self.project))
        return whole.of_slice(self.slice) if self.slice else whole

    def catch_up(self) -> None:
        """Sees what others have written, where the data lies in an object store; of slices, all that there are.

        Raises:
            SourceError: The store refused.
            WriteError: What stands in for it here cannot be written.
        """
        folder = Layout.of(self.name, self.root or data_root(self.project)).folder
        with refusals(folder):
            catch_up(folder)

    def layout_of(self, key: str) -> Layout:
        """Where the files of one of the slices lie, also for a slice that asks for another's."""
        return Layout.of(self.name, self.root or data_root(self.project)).of_slice(key)

    def of_slice(self, key: str) -> "Dataset":
        """Returns one slice, as the dataset that it is by itself: its own source, its own files."""
        assert self.slices
        return replace(self, source=self.slices.place(self.source, key), slice=key, sliced=self.source)

    def made_slices(self) -> list[str]:
        """Returns the keys of the slices whose raw data was materialized, in order."""
        assert self.slices and not self.slice
        there = {path.parents[1].name for path in self.layout.slices.glob("*/raw/inventory.json")}
        return [key for key in self.slices.all_keys() if key in there]

    @property
    def title(self) -> str:
        """What messages call it: its name; of a slice, with the slice's key."""
        return f"{self.name}/{self.slice}" if self.slice else self.name

    @property
    def command(self) -> str:
        """What is to be run to make it."""
        return f"tfr run {self.name}" + (f" --slices {self.slice}" if self.slice else "")

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, in order."""
        return self.source.splits.names if self.source.splits else (ONLY_SPLIT,)

    @property
    def shard_counts(self) -> dict[str, int]:
        """Number of files of each split, in order."""
        if isinstance(self.shards, int):
            return dict.fromkeys(self.splits, self.shards)
        return {split: self.shards[split] for split in self.splits}

    @property
    def shard_keys(self) -> list[str]:
        """Partition keys of the shards."""
        return [key for split, count in self.shard_counts.items() for key in shard_keys(split, count)]
