"""Locks between processes: files that the kernel unlocks when their holder is gone, however it ended."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def lock(path: Path, wait: bool = True) -> int | None:
    """Locks a file, which is made where it is missing, or a folder that exists.

    Args:
        path: The file or folder. Removing it ends nobody's lock, but the next one locks another file.
        wait: Whether to wait while another process, or another call in this one, holds the lock.

    Returns:
        An open file for `unlock`; None when the lock is held and `wait` is false.

    Raises:
        OSError: It cannot be opened for writing, or its filesystem has no locks.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    file = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    except BaseException:
        os.close(file)
        raise
    return file


def unlock(file: int) -> None:
    """Ends a lock, also that of forked children, and closes its file."""
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock of a file or folder while the block runs. Waits and raises as `lock`."""
    file = lock(path)
    assert file is not None
    try:
        yield
    finally:
        unlock(file)


@contextmanager
def life_sign(path: Path) -> Iterator[None]:
    """Keeps a locked file while the block runs; when it raises, for as long as the process lives.

    So a file without its lock is that of a process that died, or ended without having put its affairs in order.

    Raises:
        OSError: It cannot be made, or its filesystem has no locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}")  # appears under its name when it is locked: nobody finds it unlocked
    file = lock(new)
    assert file is not None
    new.rename(path)
    yield
    path.unlink(missing_ok=True)  # before it is unlocked, so that nobody takes it for that of a dead process
    unlock(file)


@contextmanager
def if_dead(path: Path) -> Iterator[bool]:
    """Yields whether a life sign's process is dead; while the block runs, every other process is told that it is not.

    Where there is no life sign, or no way to know, the process counts as alive.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        dead = os.path.samestat(os.fstat(file), path.stat())  # else it was removed between the two calls
    except OSError:
        dead = False
    try:
        yield dead
    finally:
        os.close(file)
