"""The folders in a folder, on disk or by URL, where each is a slice of raw data."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfr_assets.errors import SourceError
from tfr_assets.sources.model.slices import WORDS
from tfr_assets.storage.file_names import is_hidden, is_remote
from tfr_assets.storage.raw_files import backend_errors, filesystem

_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_=.-]{0,99}")


def subfolders(folder: str, storage_options: Mapping[str, Any]) -> list[str]:
    """Returns the names of the folders in a folder, in order; none, if it is not there.

    Those that begin with a dot or an underscore are left out.

    Args:
        folder: Its path or URL.
        storage_options: Passed to fsspec.

    Raises:
        SourceError: It cannot be listed, or a name cannot be that of a slice.
    """
    names = sorted(name for name in _names(folder, storage_options) if not is_hidden(name))
    if wrong := next((name for name in names if not _NAME.fullmatch(name) or name in WORDS), None):
        raise SourceError(
            f"{folder.rstrip('/')}/{wrong}: cannot be the name of a slice, which has letters, digits, '-', '_', '=', "
            f"single dots, and is none of {', '.join(WORDS)}; rename it, with '_' at its beginning to leave it out"
        )
    return names


def _names(folder: str, storage_options: Mapping[str, Any]) -> list[str]:
    if not is_remote(folder):
        path = Path(folder.removeprefix("file://").removeprefix("local://")).expanduser()
        try:
            return [entry.name for entry in path.iterdir() if entry.is_dir()] if path.is_dir() else []
        except OSError as error:
            raise SourceError(f"{folder}: cannot be listed: {error.strerror}") from error
    with backend_errors(folder):
        fs, path_there = filesystem(folder, storage_options)
        fs.invalidate_cache()
        if not fs.isdir(path_there):
            return []
        found = fs.ls(path_there, detail=True)
        return [each["name"].rstrip("/").rpartition("/")[2] for each in found if each["type"] == "directory"]
