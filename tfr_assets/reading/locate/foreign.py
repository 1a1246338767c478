"""Files of other origin: those that nothing describes yet, and those that were adopted, whose names follow no rule."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.layout import manifest_path, names_alike
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.file_names import is_remote
from tfr_assets.writing.foreign.sets import adopting_again, check_complete, foreign_sets, sets_in

_T = TypeVar("_T")


def undescribed_files(what: str | os.PathLike[str], split: str | None) -> list[Path]:
    """Returns the files of a path, all of one set, if none of what lies there has a manifest; else nothing.

    Args:
        what: As for `locate`.
        split: Which set, if there are several: a word of its files' names.

    Raises:
        ConfigError: There are several sets, or none of that split.
        StaleError: As for `foreign_sets`.
    """
    if not isinstance(what, str | os.PathLike) or is_remote(str(what)):
        return []
    if isinstance(what, str) and not re.search("[/.~]", what):
        return []
    path = Path(os.fspath(what).removeprefix("file://")).expanduser()
    if path.is_file():
        return [] if manifest_path(path).exists() else [path]
    if not path.is_dir() or any((path / part).is_dir() for part in ("raw", "shards", "merged", "manifest")):
        return []
    sets = foreign_sets(path)
    return choose_set(sets, split, path) if sets else []


def adopted_files(
    folder: Path | str, names: Sequence[str], split: str | None, load: Callable[[str], Manifest | None]
) -> list[str]:
    """Returns the names of a set in a folder if they were adopted; else nothing.

    Args:
        folder: Where they are.
        names: Of all files with a manifest.
        split: As for `undescribed_files`.
        load: Returns the manifest of a name.

    Raises:
        ConfigError: As for `undescribed_files`.
        StaleError: Files are missing, or were added.
    """
    if not names or adopted_with(load(min(names))) is None:
        return []
    chosen = choose_set(names_alike(names), split, folder)
    wanted = adopted_with(load(chosen[0]))
    if wanted != len(chosen):
        raise StaleError(
            f"{folder} has {len(chosen)} files like {chosen[0]}, and {wanted} were adopted; if it is a copy, copy it "
            f"again, else {adopting_again(folder)}"
        )
    check_complete(folder, chosen)
    return chosen


def check_none_added(folder: Path, chosen: Sequence[str]) -> None:
    """Refuses an adopted set beside which there are files that are called like it.

    Raises:
        StaleError: There are some.
    """
    beside = next((alike for alike in sets_in(folder).values() if chosen[0] in alike), chosen)
    if added := sorted({*beside} - {*chosen}):
        raise StaleError(
            f"{folder} has {added[0]} beside {chosen[0]}, with which it was not adopted; move it elsewhere, or "
            f"{adopting_again(folder)}"
        )


def choose_set(sets: Mapping[str, list[_T]], split: str | None, folder: Path | str) -> list[_T]:
    """Returns the only set, or that of a split, which is `train` where there are several.

    Args:
        sets: By what their names are without numbers.
        split: A word of its names.
        folder: For messages.

    Raises:
        ConfigError: Not exactly one is it.
    """
    if split is None and len(sets) == 1:
        return next(iter(sets.values()))
    found = [alike for alike in sets if (split or "train") in re.findall("[A-Za-z]+", alike)]
    if len(found) != 1:
        raise ConfigError(
            f"{folder} holds several sets of files: {', '.join(sets)}; give a word that one of their names has as "
            "split=, or the path of one file"
        )
    return sets[found[0]]


def adopted_with(manifest: Manifest | None) -> int | None:
    """Returns how many files there were in the set that a file was adopted with; None if it was not."""
    adopted = manifest.made_from.get("adopted") if manifest else None
    return adopted["files"] if isinstance(adopted, dict) else None
