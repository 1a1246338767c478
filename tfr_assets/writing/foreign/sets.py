"""TFRecord files that nothing here describes: which there are, and which belong together."""

import re
from collections.abc import Sequence
from pathlib import Path

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.layout import feature_spec_path, manifest_path, names_alike
from tfr_assets.writing.shard import load_feature_spec
from tfr_assets.writing.stored import find_record_files

_NUMBERED = re.compile(r".*?(\d+)-of-(\d+)\D*")


def foreign_sets(place: Path) -> dict[str, list[Path]]:
    """Returns sets of files of which one at least has no manifest, by what their names are without numbers.

    Args:
        place: One file; or a folder, of which only its own files are looked at.

    Raises:
        ConfigError: There is no such file or folder.
        StaleError: Files of a set are missing, by their names; or the manifests of files that were written here.
    """
    if not place.exists():
        raise ConfigError(f"there is no file or folder {place}")
    if place.is_file():
        return {} if manifest_path(place).exists() else {place.name: [place]}
    sets = {
        alike: [place / name for name in names]
        for alike, names in sets_in(place).items()
        if not all(manifest_path(place / name).exists() for name in names)
    }
    if sets and load_feature_spec(place) and not any(manifest_path(place / "any").parent.glob("*.json")):
        raise StaleError(
            f"{place} has the feature spec of files that were written or adopted here, and none of their manifests: "
            f"copy the folder again with all that is in it, or write the files again. If they are others, remove "
            f"{feature_spec_path(place)}"
        )
    for files in sets.values():
        check_complete(place, [file.name for file in files])
    return sets


def adopting_again(folder: Path | str) -> str:
    """Returns what to do where files were adopted otherwise than they lie there now."""
    return f"remove {folder}/manifest and {folder}/feature_spec.json, and run `tfr adopt {folder}`"


def sets_in(folder: Path) -> dict[str, list[str]]:
    """Returns the names of a folder's own TFRecord files, by what they are without numbers."""
    return names_alike(path.name for path in find_record_files([folder]) if path.parent == folder)


def check_complete(folder: Path | str, names: Sequence[str]) -> None:
    """Refuses some files of a set whose names say that there are more: `00001-of-00004`, counted from 0 or 1.

    Raises:
        StaleError: Files are missing.
    """
    matches = [match for name in names if (match := _NUMBERED.fullmatch(name))]
    if not matches:
        return
    found, count = {int(match[1]) for match in matches}, int(matches[0][2])
    first = 1 if count in found else 0
    if found != {*range(first, first + count)}:
        raise StaleError(
            f"{folder} has {len(found)} of the {count} files that their names tell of, such as {names[0]}. Get all of "
            "them, or name one file"
        )
