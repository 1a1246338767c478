"""Which files belong together, by their names: a set is all that is `-of-N`."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from tfr_assets.errors import ConfigError
from tfr_assets.layout import SLICES, is_slice
from tfr_assets.storage.file_names import is_remote

FileChoice = Literal["shards", "merged"]
SliceChoice = str | tuple[str, str] | list[str]  # a text such as "last", the first and the last one, or which
MissingSlices = Literal["raise", "allow"]
CHOICES: tuple[FileChoice, ...] = ("shards", "merged")
_FILE = re.compile(r"(?P<stem>.+\.tfrecord)(?:-\d{5}-of-(?P<count>(?!00000)\d{5}))?")


def command_for(path: str) -> str:
    """Returns what to run, or to call, so that a file, or its whole folder, is written again."""
    folder, _, name = path.rpartition("/")
    if folder.rpartition("/")[2] not in CHOICES:
        return "`tfr_assets.write`"
    above = folder.rpartition("/")[0]
    of_slice = f" --slices {above.rpartition('/')[2]}" if is_of_slice(above) else ""
    return f"`tfr run {name.partition('-')[0]}{of_slice}`"


def is_of_slice(folder: str) -> bool:
    """Whether a folder is that of a slice; of a URL, its name alone tells."""
    return folder.split("/")[-2:-1] == [SLICES] and (is_remote(folder) or is_slice(Path(folder)))


def is_record_file(name: str) -> bool:
    """Whether a file is named as TFRecord files are."""
    return _FILE.fullmatch(name) is not None


def other_splits(path: str, names: Iterable[str]) -> list[str]:
    """Returns the splits in files' names, except that of the file at `path`."""
    own, *others = map(split_of, (path.rpartition("/")[2], *names))
    return sorted({*others} - {own, ""})


def split_of(name: str) -> str:
    """Returns the split that a file's name tells of; nothing, if none."""
    match = _FILE.fullmatch(name)
    return _split_of(match["stem"]) if match else ""


def sets_of(names: Iterable[str], split: str | None, folder: str) -> list[list[str]]:
    """Returns the sets of a split that some of their files' names show, each with all of its names in order.

    Args:
        names: Names of files that have a manifest.
        split: Which split; None: the only one, or `train`.
        folder: Where they are, for messages.

    Raises:
        ConfigError: There is no such split.
    """
    matches = [_FILE.fullmatch(name) for name in names]
    found = {(m["stem"], m["count"] or "") for m in matches if m}
    return [_names(*each) for each in sorted(_of_split(found, split, folder))]


def sets_by_stem(names: Iterable[str]) -> dict[str, list[list[str]]]:
    """Returns the sets that some of their files' names show, each with all of its names, by `NAME-SPLIT.tfrecord`.

    A name that follows no rule is a set of its own.
    """
    found: dict[str, set[str]] = {}
    for name in names:
        match = _FILE.fullmatch(name)
        found.setdefault(match["stem"] if match else name, set()).add((match and match["count"]) or "")
    return {stem: [_names(stem, count) for count in sorted(counts)] for stem, counts in found.items()}


def _of_split(found: set[tuple[str, str]], split: str | None, folder: str) -> set[tuple[str, str]]:
    """Returns the sets that are of a split; a file that is not named `NAME-SPLIT.tfrecord…` is of none."""
    splits = {_split_of(stem) for stem, _ in found}
    if split is None:
        split = next(iter(splits)) if len(splits) == 1 else "train"
    if found and split not in splits:
        known = " or ".join(map(repr, sorted(splits)))
        raise ConfigError(f"there is no split {split!r} in {folder}; choose split={known}")
    return {(stem, count) for stem, count in found if _split_of(stem) == split}


def _split_of(stem: str) -> str:
    return stem.removesuffix(".tfrecord").partition("-")[2]


def _names(stem: str, count: str) -> list[str]:
    return [f"{stem}-{index:05d}-of-{count}" for index in range(int(count))] if count else [stem]
