"""Locks between processes: files and folders that the kernel unlocks when their holder is gone, however it ended.

So what is named as a temporary file is, and is not locked, was left by a process that was killed.
"""

import errno
import fcntl
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}  # what a file system without locks says, such as some NFS
_warned: set[int] = set()  # devices


def lock(path: Path, wait: bool = True) -> int | None:
    """Locks a file, which is made where it is missing, or a folder that exists.

    Args:
        path: The file or folder. Removing it ends no lock, but the next caller locks another file.
        wait: Whether to wait while another process, or another call in this one, holds the lock.

    Returns:
        An open file for `unlock`; None when the lock is held and `wait` is false.

    Raises:
        OSError: It cannot be opened for writing, or its file system has no locks.
    """
    file = _make_or_open(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    except BaseException:
        os.close(file)
        raise
    return file


def _make_or_open(path: Path) -> int:
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    return os.open(path, flags | os.O_CLOEXEC, 0o666)


def lock_open(file: int, path: Path) -> None:
    """Locks an open file or folder, and waits for that; warns once of a file system that has no locks.

    Args:
        file: Its descriptor.
        path: Where it is, for the warning.

    Raises:
        OSError: The file system refused for another reason.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        if (device := os.fstat(file).st_dev) not in _warned:
            _warned.add(device)
            folder = path if path.is_dir() else path.parent
            warnings.warn(
                f"{folder}: this file system has no locks ({error.strerror}). Files are written whole all the same, "
                "but let only one process at a time write there, and remove temporary files of killed ones yourself",
                stacklevel=2,
            )


def unlock(file: int) -> None:
    """Ends a lock, also that of forked children, and closes its file."""
    try:
        with suppress(OSError):  # there never was one, where the file system has none
            fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        os.close(file)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Holds the lock of a file or folder while the block runs. Waits as `lock`, and warns as `lock_open`.

    Raises:
        OSError: It cannot be opened for writing.
    """
    file = _make_or_open(path)
    try:
        lock_open(file, path)
        yield
    finally:
        unlock(file)


@contextmanager
def life_sign(path: Path) -> Iterator[None]:
    """Keeps a locked file while the block runs; when it raises, for as long as the process lives.

    So a file without its lock is that of a process that died, or ended with an error.

    Raises:
        OSError: It cannot be made, or its file system has no locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}")  # appears under its name when it is locked: no process finds it unlocked
    try:
        file = lock(new)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    assert file is not None
    new.rename(path)
    yield
    path.unlink(missing_ok=True)  # before it is unlocked, so that it is not taken for that of a dead process
    unlock(file)


@contextmanager
def if_abandoned(path: Path) -> Iterator[bool]:
    """Yields whether a file or folder has no holder any more; while the block runs, others see that it has one.

    What is not there, or cannot be known, counts as held.
    """
    try:
        file = _open(path)
    except OSError:  # it is gone, or somebody else's
        yield False
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        abandoned = os.path.samestat(os.fstat(file), path.stat())  # else it was renamed or removed between the calls
    except OSError:
        abandoned = False
    try:
        yield abandoned
    finally:
        os.close(file)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except (IsADirectoryError, PermissionError):  # a folder, or a file that can be removed, but not written to
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def make_locked_file(folder: Path, prefix: str, suffix: str) -> tuple[int, Path]:
    """Makes a file that `if_abandoned` is false of while this process lives and has it open.

    Returns:
        Its descriptor, open for reading and writing, and its path.

    Raises:
        OSError: The file system refused.
    """
    while True:
        file, name = tempfile.mkstemp(prefix=prefix, suffix=suffix, dir=folder)
        try:
            lock_open(file, Path(name))
            if os.fstat(file).st_nlink:
                return file, Path(name)
        except BaseException:
            os.close(file)
            Path(name).unlink(missing_ok=True)
            raise
        os.close(file)  # before it was locked, somebody took it for abandoned


def make_locked_folder(parent: Path, prefix: str, mode: int = 0o700) -> tuple[int, Path]:
    """Makes a folder that `if_abandoned` is false of while this process lives and has it open.

    Returns:
        A descriptor, to be closed when the folder is removed, and its path.

    Raises:
        OSError: The file system refused.
    """
    while True:
        path = parent / f"{prefix}{uuid4().hex}"
        path.mkdir(mode)
        with suppress(FileNotFoundError):  # before it was locked, somebody took it for abandoned
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                lock_open(file, path)
                path.stat()
            except BaseException:
                os.close(file)
                with suppress(OSError):
                    path.rmdir()
                raise
            return file, path


def remove_locked_folder(file: int, path: Path) -> None:
    """Removes what `make_locked_folder` made, as far as the file system lets it."""
    shutil.rmtree(path, ignore_errors=True)
    os.close(file)


def remove_abandoned_folders(parent: Path, prefix: str) -> None:
    """Removes folders of this prefix whose makers are gone, as far as the file system lets it."""
    for path in parent.glob(f"{prefix}*"):
        with if_abandoned(path) as abandoned:
            if abandoned:
                shutil.rmtree(path, ignore_errors=True)
