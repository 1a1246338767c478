"""What changed between two datasets, or two versions of one: features, and records by their content."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfr_assets.reading.access.dataset import Dataset
from tfr_assets.reading.locate.file_sets import CHOICES, split_of
from tfr_assets.reading.locate.files import locate
from tfr_assets.records.frames.marks import join_marks
from tfr_assets.records.schema.features import Feature, FeatureSpec
from tfr_assets.storage.atomic import refusals
from tfr_assets.storage.mirror import catch_up
from tfr_assets.urls import is_object_url, mirror_of

_AT_ONCE = 4096  # records
_SAID = {"kind", "shape", "arrow_type", "optional", "fill", "part", "sequence", "names"}


@dataclass(frozen=True)
class FeatureChange:
    """A feature that is not the same.

    Attributes:
        name: Its name.
        before: What it was; None: it was not there.
        after: What it is; None: it is gone.
    """

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class SplitChange:
    """What became of the records of a split.

    Attributes:
        split: Its name.
        before: Number of records before.
        after: Number of records now.
        kept: Records that are in both, whatever their place.
        moved: Whether those that are in both come in another order.
    """

    split: str
    before: int
    after: int
    kept: int
    moved: bool

    @property
    def added(self) -> int:
        """Number of records that are new."""
        return self.after - self.kept

    @property
    def removed(self) -> int:
        """Number of records that are gone."""
        return self.before - self.kept

    @property
    def is_same(self) -> bool:
        """Whether nothing changed."""
        return not (self.added or self.removed or self.moved)


@dataclass(frozen=True)
class Differences:
    """What changed.

    Attributes:
        features: Features that are not the same, by name.
        splits: All splits of both, by name.
    """

    features: tuple[FeatureChange, ...]
    splits: tuple[SplitChange, ...]

    @property
    def none(self) -> bool:
        """Whether both are the same."""
        return not self.features and all(split.is_same for split in self.splits)


def compare(before: str | Path, after: str | Path) -> Differences:
    """Compares two files, folders of files, or folders of datasets, here or by URL, split by split.

    Records are read only where the manifests do not show already that they are the same; then 8 bytes a record stay in
    memory.

    Raises:
        TfrError: As `tfr_assets.open` raises it, and reading.
    """
    old, new = _by_split(before), _by_split(after)
    if len(old) == len(new) == 1:
        old = dict(zip(new, old.values(), strict=True))  # whatever the splits are called
    specs = [next(iter(each.values())).features for each in (old, new)]
    splits = tuple(_changes(split, old.get(split), new.get(split)) for split in sorted(old.keys() | new.keys()))
    return Differences(tuple(_feature_changes(*specs)), splits)


def _by_split(what: str | Path) -> dict[str, Dataset]:
    path = mirror_of(str(what)) if is_object_url(what) else Path(what)
    with refusals(path):
        catch_up(path)
    for folder in (path, *(path / choice for choice in CHOICES)):
        if splits := {split_of(manifest.stem) for manifest in (folder / "manifest").glob("*.json")}:
            return {split: Dataset(locate(path, split=split)) for split in sorted(splits)}
    return {"": Dataset(locate(what))}


def _feature_changes(before: FeatureSpec, after: FeatureSpec) -> Iterator[FeatureChange]:
    old, new = ({feature.name: _said(feature) for feature in spec.features} for spec in (before, after))
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield FeatureChange(name, old.get(name), new.get(name))


def _said(feature: Feature) -> str:
    values = {name: value for name, value in vars(feature).items() if name in _SAID and value not in (None, False, ())}
    kind, arrow_type = values.pop("kind"), values.pop("arrow_type")
    rest = [name if value is True else f"{name}={value}" for name, value in sorted(values.items())]
    return ", ".join([f"{kind} of {arrow_type}", *rest])


def _changes(split: str, before: Dataset | None, after: Dataset | None) -> SplitChange:
    if before is None or after is None:
        return SplitChange(split, len(before or ()), len(after or ()), 0, False)
    if _digest(before) == _digest(after):
        return SplitChange(split, len(before), len(after), len(before), False)
    old, new = _hashes(before), _hashes(after)
    kept = _in_both(old, new)
    return SplitChange(split, len(old), len(new), int(kept[0].sum()), bool((old[kept[0]] != new[kept[1]]).any()))


def _digest(dataset: Dataset) -> tuple[int, int]:
    """Returns number of records, and the digest over all of them in their order, from the manifests."""
    end = join_marks(dataset.manifests)[-1]
    return end.records, end.digest


def _hashes(dataset: Dataset) -> np.ndarray:
    """Returns 64 bits that stand for the content of each record, as uint64."""
    found = np.empty(len(dataset), np.uint64)
    for first in range(0, len(dataset), _AT_ONCE):
        records = dataset.take(slice(first, first + _AT_ONCE), into="bytes")
        hashed = b"".join(hashlib.blake2b(record, digest_size=8).digest() for record in records)
        found[first : first + len(records)] = np.frombuffer(hashed, np.uint64)
    return found


def _in_both(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns which of each are in the other, too: of those that come several times, so many as come in both."""
    sides = []
    for mine, theirs in ((old, new), (new, old)):
        order = np.argsort(mine, kind="stable")
        ascending, others = mine[order], np.sort(theirs)
        nth = np.arange(len(mine)) - np.searchsorted(ascending, ascending)  # of those that are equal
        count = np.searchsorted(others, ascending, "right") - np.searchsorted(others, ascending)
        both = np.empty(len(mine), bool)
        both[order] = nth < count
        sides.append(both)
    return sides[0], sides[1]
