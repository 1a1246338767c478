"""A dataset as its YAML describes it, without Dagster."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from tfr_assets.errors import ConfigError
from tfr_assets.layout import MAX_SHARDS, Layout, data_root, shard_keys
from tfr_assets.records.frames.compression import COMPRESSIONS
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.sources import ONLY_SPLIT, Slices, Source, has_slices, subfolders
from tfr_assets.storage.atomic import refusals
from tfr_assets.storage.mirror import catch_up
from tfr_assets.writing.appended import appended_files, appended_slices


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
        shards_per_step: How many shards one step of a run writes, one after the other.
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
    shards_per_step: int = 1
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
        return self.whole_layout.of_slice(self.slice) if self.slice else self.whole_layout

    @property
    def whole_layout(self) -> Layout:
        """Where the files of the dataset lie, or all slices, also for a slice that asks for it."""
        return Layout.of(self.name, self.root or data_root(self.project))

    def catch_up(self) -> None:
        """Sees what others have written, where the data lies in an object store; of slices, all that there are.

        Raises:
            SourceError: The store refused.
            WriteError: What stands in for it here cannot be written.
        """
        folder = self.whole_layout.folder
        with refusals(folder):
            catch_up(folder)

    def layout_of(self, key: str) -> Layout:
        """Where the files of one of the slices lie, also for a slice that asks for another's."""
        return self.whole_layout.of_slice(key)

    def of_slice(self, key: str) -> "Dataset":
        """Returns one slice, as the dataset that it is by itself: its own source, its own files."""
        assert self.slices
        source = self.slices.place(self.source, key)
        if self.slices.append:
            source = replace(source, files=appended_files(self.layout_of(key)))
        return replace(self, source=source, slice=key, sliced=self.source)

    def slice_keys(self, now: datetime | None = None) -> list[str]:
        """Returns the keys of all slices that there are by now, in order; also those made whose folder is gone.

        Args:
            now: As for `Slices.all_keys`.

        Raises:
            SourceError: The folder of their folders cannot be listed.
        """
        assert self.slices
        if not self.slices.grows:
            return self.slices.all_keys(now)
        if self.slices.folder:
            there = subfolders(self.slices.folder, self.source.storage_options)
        else:
            there = appended_slices(self.whole_layout)
        return sorted({*there, *self._inventoried()})

    def choose_slices(self, said: str) -> list[str]:
        """Returns the keys of the slices that a text names. Raises as `Slices.choose` and `slice_keys`."""
        assert self.slices
        return self.slices.choose(said, self.slice_keys())

    def made_slices(self) -> list[str]:
        """Returns the keys of the slices whose raw data was materialized, in order. Raises as `slice_keys`."""
        there = self._inventoried()
        return [key for key in self.slice_keys() if key in there]

    def _inventoried(self) -> set[str]:
        return {path.parents[1].name for path in self.whole_layout.slices.glob("*/raw/inventory.json")}

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
