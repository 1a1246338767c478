"""Folders in memory, for files that are synced hundreds of times, such as Dagster's databases."""

import shutil
import tempfile
import weakref
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ENOUGH = 2 << 30  # that must be free: many tests run at the same time, and each needs some megabytes


def make_in_memory(folder: Path, owner: object) -> None:
    """Makes a folder whose files lie in memory as long as its owner lives; on the disk, where memory is too small.

    A run commits hundreds of times to Dagster's databases, and a disk takes milliseconds for each: together, as long as
    all its computing. No test here needs that they outlive a power cut.
    """
    if not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _ENOUGH:
        folder.mkdir()
        return
    real = tempfile.mkdtemp(prefix="tfr-", dir=_MEMORY)
    folder.symlink_to(real, target_is_directory=True)
    weakref.finalize(owner, shutil.rmtree, real, ignore_errors=True)
