"""Which datasets lie in one folder, and how much of each: as readers tell sets apart, but of files that may lack."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from tfr_assets.layout import names_alike
from tfr_assets.reading.locate.file_sets import sets_by_stem
from tfr_assets.reading.locate.foreign import adopted_with
from tfr_assets.records.frames.manifest import Manifest


@dataclass(frozen=True)
class SetThere:
    """The files of a split, or of a set that was adopted.

    Attributes:
        stem: What their names have in common, such as `flights-train.tfrecord`.
        there: Names of those that are there.
        count: How many there must be.
        is_alone: Whether no other whole set has this stem: readers refuse to choose among several.
    """

    stem: str
    there: tuple[str, ...]
    count: int
    is_alone: bool = True


def dataset_of(name: str) -> str:
    """Returns the name of the dataset that a file's name begins with."""
    return name.partition("-")[0].removesuffix(".tfrecord")


def sets_there(manifests: Mapping[str, Manifest | None]) -> dict[str, list[SetThere]]:
    """Returns the sets in a folder by their datasets; what was adopted goes by its name without numbers.

    Args:
        manifests: Of the files that are there, by their names; None, where one cannot be read.
    """
    adopted = {name: count for name, manifest in manifests.items() if (count := adopted_with(manifest)) is not None}
    found: dict[str, list[SetThere]] = defaultdict(list)
    for alike, names in names_alike(adopted).items():
        found[alike].append(SetThere(alike, tuple(names), max(map(adopted.__getitem__, names))))
    for stem, sets in sets_by_stem(manifests.keys() - adopted.keys()).items():
        counted = [SetThere(stem, tuple(name for name in names if name in manifests), len(names)) for names in sets]
        whole = [each for each in counted if len(each.there) == each.count]
        chosen = max(whole or counted, key=lambda each: each.count)
        found[dataset_of(stem)].append(SetThere(stem, chosen.there, chosen.count, is_alone=len(whole) <= 1))
    return dict(found)
