"""A dataset as its YAML describes it, without Dagster."""

from dataclasses import dataclass, field
from pathlib import Path

from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout, shard_keys
from tfr_assets.records.compression import COMPRESSIONS
from tfr_assets.records.features import FeatureOptions
from tfr_assets.sources import Source

SPLIT = "train"
MAX_SHARDS = 99_999  # five digits in a shard's name


@dataclass(frozen=True)
class Dataset:
    """Raw data and how it shall become TFRecord.

    Attributes:
        name: The dataset's name; folder, files and assets carry it.
        source: Where the raw data is.
        shards: Number of files, each one partition.
        compression: `none`, `gzip` or `zlib`.
        features: What to do with which column.
        root: Folder of all datasets; None: `data_root()`, asked when needed.

    Raises:
        ConfigError: A setting cannot work.
    """

    name: str
    source: Source
    shards: int = 16
    compression: str = "none"
    features: FeatureOptions = field(default_factory=FeatureOptions)
    root: Path | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.shards <= MAX_SHARDS:
            raise ConfigError(f"shards: {self.shards} is not between 1 and {MAX_SHARDS}")
        if self.compression not in COMPRESSIONS:
            raise ConfigError(f"compression: {self.compression!r} is none of {', '.join(COMPRESSIONS)}")

    @property
    def layout(self) -> Layout:
        """Where the dataset's files lie."""
        return Layout.of(self.name, self.root)

    @property
    def shard_keys(self) -> list[str]:
        """Partition keys of the shards."""
        return shard_keys(SPLIT, self.shards)
