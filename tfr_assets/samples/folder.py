"""A folder of files that is there as a whole or not at all."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tfr_assets.errors import WriteError


def write_folder(folder: Path, files: Mapping[str, bytes]) -> int:
    """Writes files below a folder, unless just these are there already; returns how many bytes they have together.

    Args:
        folder: The folder; whatever else it holds is removed.
        files: Contents by path below it.

    Raises:
        WriteError: The file system refused; what was there before is untouched.
    """
    size = sum(map(len, files.values()))
    if {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files:
        return size
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
            for name, content in files.items():
                path = Path(temporary, "new", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if folder.exists():
                folder.rename(Path(temporary, "old"))
            Path(temporary, "new").rename(folder)
            shutil.rmtree(Path(temporary, "old"), ignore_errors=True)
    except OSError as error:
        raise WriteError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return size
