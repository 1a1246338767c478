"""Where everything of a dataset lies, and what its files are called.

    data/                                       $TFR_DATA, a folder or a URL; else the project's setting, or `data`
    └── flights/
        ├── .lock                               locked by the run that works on the dataset
        ├── report.html                         all of it on one page, for people
        ├── raw/inventory.json                  what raw data was there
        │   ├── feature_spec.json, state.json   of a slice: what its records have; what its raw files were
        │   ├── files.json                      of a slice of a folder that only grows: its raw files
        │   ├── landed-…/part-….parquet         only where the source cannot be read by row range
        │   ├── shards.json                     how many files each split gets, where that is planned (`shards: auto`)
        │   └── skipped.tsv                     raw files that were left out, each with the reason
        ├── shards/
        │   ├── flights-train.tfrecord-00000-of-00016
        │   ├── …                               nothing else matches `flights-train.tfrecord-*`
        │   ├── feature_spec.json               how a record of any of them is parsed
        │   ├── index/….idx                     "offset size" a record, as NVIDIA DALI reads it
        │   └── manifest/….json                 what each file must hold
        ├── merged/                             the same, with one file: flights-train.tfrecord
        ├── readers/…                           measurements, pictures, and which reader to use
        ├── writers/…                           measurements, pictures
        └── slices/                             only where raw data comes in slices
            ├── slices.json                     which slices there are
            └── 2026-03-01/{raw,shards,merged,…}    all of the above, of one of them

Index and manifest lie in folders of their own because training code globs for shards.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tfr_assets.errors import ConfigError
from tfr_assets.project import data_setting, find_project
from tfr_assets.urls import mirror_of

DATA_VARIABLE = "TFR_DATA"
RECOMMENDATION = "recommendation.json"
SLICES, SLICES_FILE = "slices", "slices.json"
APPENDED = "files.json"
MAX_SHARDS = 99_999  # five digits in a shard's name
_SHARD_NAME = re.compile(r"(.*\.tfrecord-)\d{5}-of-(\d{5})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")


def data_root(project: Path | None = None) -> Path:
    """Returns the folder of all datasets: `$TFR_DATA`, else what the project's `pyproject.toml` says.

    Where neither says anything, it is the folder `data` in the project, else in the working directory.

    Where that is the URL of an object store, it is the folder of this machine that stands in for it: see `urls`.

    Args:
        project: The project's folder; None: the current project's.

    Raises:
        ConfigError: That is no such URL, but looks like one; or what the project says cannot be understood.
    """
    if value := os.environ.get(DATA_VARIABLE):  # set but empty counts as unset
        return _folder(value, Path.cwd(), DATA_VARIABLE)
    if project is None:
        found = find_project()
        if found is None:
            return Path.cwd() / "data"
        project = found.root
    return _folder(data_setting(project) or "data", project, f"{project / 'pyproject.toml'}: [tool.tfr-assets] data")


def _folder(said: str, base: Path, where: str) -> Path:
    if "://" not in said:
        return base.absolute() / Path(said).expanduser()
    try:
        return mirror_of(said)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


@dataclass(frozen=True)
class Shard:
    """One of the files of a split, and the rows of the inventory that it holds.

    Attributes:
        split: Name of the split.
        index: Number of the shard, from 0.
        count: Number of shards of the split.
        start: First row.
        stop: Row after the last one.
    """

    split: str
    index: int
    count: int
    start: int
    stop: int

    @property
    def key(self) -> str:
        """The partition key, such as `train-00003-of-00016`."""
        return shard_key(self.split, self.index, self.count)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start


def check_split_name(name: str) -> None:
    """Refuses what cannot be part of a file's name and a partition key.

    Raises:
        ConfigError: The name holds other characters than letters, digits and underscores.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"split name {name!r}: use letters, digits and underscores only, such as 'train'")


def shard_key(split: str, index: int, count: int) -> str:
    """Returns the partition key of a shard, such as `train-00003-of-00016`."""
    return f"{split}-{index:05d}-of-{count:05d}"


def shard_keys(split: str, count: int) -> list[str]:
    """Returns the partition keys of all shards of a split, in order."""
    return [shard_key(split, index, count) for index in range(count)]


def assign_rows(rows: int, count: int, split: str = "train", first: int = 0) -> list[Shard]:
    """Cuts the rows from `first` on into `count` consecutive shards whose sizes differ by one at most.

    No shard is empty unless there are fewer rows than shards.
    """
    cuts = [first + index * rows // count for index in range(count + 1)]
    return [Shard(split, index, count, cuts[index], cuts[index + 1]) for index in range(count)]


@dataclass(frozen=True)
class Layout:
    """The paths of one dataset. Creates nothing.

    Attributes:
        name: The dataset's name: letters, digits and underscores.
        folder: The dataset's folder.

    Raises:
        ConfigError: The name cannot be a folder's, a file's and an asset key's at once.
    """

    name: str
    folder: Path

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"dataset name {self.name!r}: use letters, digits and underscores only, such as 'my_data'"
            )

    @classmethod
    def of(cls, name: str, root: Path | None = None) -> "Layout":
        """Returns the layout of dataset `name` below `root`, by default `data_root()`."""
        return cls(name, (root or data_root()) / name)

    def of_slice(self, key: str) -> "Layout":
        """Returns the layout of one of the dataset's slices: the same files, in a folder of their own."""
        return Layout(self.name, self.slices / key)

    @cached_property
    def slices(self) -> Path:
        """Folder of the slices' folders."""
        return self.folder / SLICES

    @cached_property
    def lock(self) -> Path:
        """File that a run locks while it works on the dataset."""
        return self.folder / ".lock"

    @cached_property
    def report(self) -> Path:
        """The page that shows the dataset to people."""
        return self.folder / "report.html"

    @cached_property
    def raw(self) -> Path:
        """Folder of the inventory and of what was landed."""
        return self.folder / "raw"

    @cached_property
    def inventory(self) -> Path:
        """The inventory's file."""
        return self.raw / "inventory.json"

    @cached_property
    def raw_state(self) -> Path:
        """File that says of a slice what the raw files were when its inventory was taken."""
        return self.raw / "state.json"

    @cached_property
    def appended(self) -> Path:
        """File that lists the raw files of a slice, where a folder only grows and each belongs to one slice."""
        return self.raw / APPENDED

    @cached_property
    def planned(self) -> Path:
        """File of the planned numbers of shards."""
        return self.raw / "shards.json"

    @cached_property
    def shards(self) -> Path:
        """Folder of the shards."""
        return self.folder / "shards"

    @cached_property
    def merged(self) -> Path:
        """Folder of the merged file."""
        return self.folder / "merged"

    @cached_property
    def readers(self) -> Path:
        """Folder of what was measured of the readers."""
        return self.folder / "readers"

    @cached_property
    def recommendation(self) -> Path:
        """File that says which reader to use."""
        return self.readers / RECOMMENDATION

    @cached_property
    def writers(self) -> Path:
        """Folder of what was measured of the writers."""
        return self.folder / "writers"

    def measurements(self) -> list[Path]:
        """Returns the files of what was measured, which are all sealed; pictures and tables for people are not."""
        folders = (self.readers, self.readers / "before", self.writers)
        return [path for folder in folders for path in sorted(folder.glob("[!.]*.json"))]

    def shard_path(self, shard: str | Shard) -> Path:
        """Returns the file of a shard, given it or its partition key, named as TFDS names them."""
        split, _, place = (shard if isinstance(shard, str) else shard.key).partition("-")
        return self.shards / f"{self.name}-{split}.tfrecord-{place}"

    def merged_path(self, split: str = "train") -> Path:
        """Returns the file that holds all records of a split."""
        return self.merged / f"{self.name}-{split}.tfrecord"


def holds_slices(folder: Path) -> bool:
    """Whether a folder is that of a dataset with slices; another may have a subfolder of that name, too."""
    return (folder / SLICES / SLICES_FILE).is_file() or any((folder / SLICES).glob("*/*/manifest"))


def is_slice(folder: Path) -> bool:
    """Whether a folder is that of a slice; the folder of all datasets may be called `slices`, too."""
    return folder.parent.name == SLICES and (folder.parent / SLICES_FILE).is_file()


def mixes_slices(folder: Path) -> str:
    """Returns what is wrong with a dataset's folder that holds both slices and files of its own; nothing, if not."""
    if not any((folder / SLICES).glob("*/*/manifest")):
        return ""
    own = [part for part in ("shards", "merged") if any((folder / part / "manifest").glob("*.json"))]
    return says_mixed(str(folder), own) if own else ""


def says_mixed(folder: str, own: Sequence[str]) -> str:
    """Returns what is wrong with a dataset's folder, a path or a URL, that holds slices and, in `own`, other files."""
    return (
        f"{folder} holds both slices and files of the whole dataset, in {' and '.join(own)}: the YAML's `slices` were "
        f"removed, or added. If it has none now, remove {folder}/{SLICES}; if it has, remove "
        f"{', '.join(f'{folder}/{part}' for part in ('raw', *own))}"
    )


def name_in(folder: Path) -> str:
    """Returns the name of the dataset whose folder, or a slice's of it, this is."""
    return (folder.parent.parent if is_slice(folder) else folder).name


def set_of(name: str) -> list[str]:
    """Returns the names of all files that there must be where one is called so; none if its name does not tell."""
    match = _SHARD_NAME.fullmatch(name)
    return [f"{match[1]}{index:05d}-of-{match[2]}" for index in range(int(match[2]))] if match else []


def names_alike(names: Iterable[str]) -> dict[str, list[str]]:
    """Returns names, in order, by what they are without their numbers: a set's differ in nothing else.

    Of `00001-of-00004`, the second number stays: sets of other numbers of files are others.
    """
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        alike = re.sub(r"(-of-\d+)|\d+", lambda number: number[1] or "#", name)
        found.setdefault(alike, []).append(name)
    return found


def manifest_path(path: Path) -> Path:
    """Returns where the manifest of a TFRecord file lies."""
    return path.parent / "manifest" / f"{path.name}.json"


def index_path(path: Path) -> Path:
    """Returns where the offset index of a TFRecord file lies."""
    return path.parent / "index" / f"{path.name}.idx"


def feature_spec_path(folder: Path) -> Path:
    """Returns where the feature spec of a folder of TFRecord files lies."""
    return folder / "feature_spec.json"
