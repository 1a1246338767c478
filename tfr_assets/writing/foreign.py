"""TFRecord files that nothing here describes: which there are, and which belong together."""

from pathlib import Path

from tfr_assets.errors import ConfigError
from tfr_assets.layout import manifest_path, names_alike
from tfr_assets.writing.stored import find_record_files


def foreign_sets(place: Path) -> dict[str, list[Path]]:
    """Returns sets of files of which one at least has no manifest, by what their names are without numbers.

    Args:
        place: One file; or a folder, of which only its own files are looked at.

    Raises:
        ConfigError: There is no such file or folder.
    """
    if not place.exists():
        raise ConfigError(f"there is no file or folder {place}")
    if place.is_file():
        return {} if manifest_path(place).exists() else {place.name: [place]}
    files = [path for path in find_record_files([place]) if path.parent == place]
    sets = names_alike(path.name for path in files)
    return {
        alike: [place / name for name in names]
        for alike, names in sets.items()
        if not all(manifest_path(place / name).exists() for name in names)
    }
