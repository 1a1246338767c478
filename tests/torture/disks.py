"""Small file systems in memory, which can be full, out of inodes or read-only. Only root can mount them."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest


@contextmanager
def small_disk(where: Path, options: str = "size=64m") -> Iterator[Path]:
    """Mounts a new file system at `where`; skips the test where that is not allowed."""
    if not _may_mount():
        pytest.skip("this user may not mount a file system")
    where.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", options, "tmpfs", str(where))
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


def remount(where: Path, options: str) -> None:
    """Changes the options of a mounted file system, such as `size=64m` or `ro`."""
    _mount("-o", f"remount,{options}", str(where))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


@cache
def _may_mount() -> bool:
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as here:
        try:
            _mount("-t", "tmpfs", "tmpfs", here)
        except (OSError, subprocess.CalledProcessError):
            return False
        subprocess.run(["umount", here], check=True)
    return True
