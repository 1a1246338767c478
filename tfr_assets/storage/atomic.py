"""Files that are whole or absent: temporary name, write, flush, fsync, rename, fsync of the folder.

A temporary file is locked while its writer lives. One that is not locked any more was left by a killed process, and the
next writer of the same name removes it.

Where a folder stands in for what lies in an object store, the store holds a file before it takes its name here, and
loses it before it is removed here; see `storage.mirror`.
"""

import glob
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tfr_assets.errors import WriteError
from tfr_assets.storage.locks import if_abandoned, make_locked_file
from tfr_assets.storage.mirror import Sending, removing

os.umask(_UMASK := os.umask(0))  # the only way to read it; done once, while importing, because it is the process's
_MODE = 0o666 & ~_UMASK
_open: dict[int, Sending] = {}  # files of this process that are being written
_TEMPORARY = re.compile(r"\.(.+)\.[a-z0-9_]{8}\.tmp")  # `_prefix`, and what mkstemp puts behind it


@contextmanager
def atomic_file(path: Path) -> Iterator[int]:
    """Opens a file that takes the name `path` when the block ends without an error, and vanishes otherwise.

    Args:
        path: Final name; its folder is created.

    Yields:
        A file descriptor, open for reading and writing, at a temporary name in the same folder.

    Raises:
        WriteError: The disk is full, the folder cannot be written, or another fault of the file system.
    """
    temporary = None
    try:
        make_folder(path.parent)
        remove_abandoned(path)
        descriptor, temporary = make_locked_file(path.parent, _prefix(path), ".tmp")
        try:
            os.fchmod(descriptor, _MODE)  # mkstemp keeps the file to its owner; readers may be others
            with Sending(path, Path(temporary)) as sending:
                _open[descriptor] = sending
                yield descriptor
                os.fsync(descriptor)
                with sending.naming():
                    os.rename(temporary, path)
                    temporary = None
        finally:
            _open.pop(descriptor, None)
            os.close(descriptor)
        sync_folder(path.parent)
    except OSError as error:
        raise WriteError(
            f"cannot write {path}: {error.strerror or error}; nothing unfinished was left under that name. "
            "Free space or fix the permissions, then run again"
        ) from error
    except MemoryError as error:
        what = str(error) or "what it should hold"
        raise WriteError(
            f"cannot write {path}: there is no memory for {what}; nothing unfinished was left under that name. "
            "Use fewer workers or smaller records, or a larger machine"
        ) from error
    finally:
        if temporary is not None:
            with suppress(OSError):  # the error that led here counts; the next writer of this name removes it
                os.unlink(temporary)


def write_atomically(path: Path, content: bytes) -> None:
    """Writes `content` to `path`, whole or not at all.

    Raises:
        WriteError: As `atomic_file`.
    """
    with atomic_file(path) as descriptor:
        write_all(descriptor, content)


def settle(descriptor: int) -> None:
    """Has all bytes of a file of `atomic_file` lie where they will stay, so that what refuses to, does so now.

    Raises:
        OSError: The file system refused.
        WriteError: The store refused.
    """
    os.fsync(descriptor)
    _open[descriptor].send()


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Writes all of `content`; `os.write` may stop early, for example on a full disk.

    Raises:
        OSError: The file system refused.
    """
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


@contextmanager
def refusals(where: Path) -> Iterator[None]:
    """Raises a WriteError for what the file system refuses while files of the project are read and written.

    Args:
        where: What the error names, if it does not know which file it was.
    """
    try:
        yield
    except OSError as error:
        raise WriteError(
            f"cannot read or write {error.filename or where}: {error.strerror or error}. "
            "Fix the permissions or the disk, then run again"
        ) from error


def remove_abandoned(path: Path) -> None:
    """Removes temporary files for `path` whose writers are gone."""
    for stray in path.parent.glob(f"{glob.escape(_prefix(path))}*.tmp"):
        with if_abandoned(stray) as abandoned:
            if abandoned:
                stray.unlink(missing_ok=True)


def abandoned_files(folder: Path) -> dict[Path, str]:
    """Returns the temporary files in a folder whose writers are gone, and the names that they were to get."""
    found = {}
    for stray in sorted(folder.glob(".*.tmp")) if folder.is_dir() else []:
        if name := _TEMPORARY.fullmatch(stray.name):
            with if_abandoned(stray) as abandoned:
                if abandoned:
                    found[stray] = name[1]
    return found


def remove_durably(path: Path) -> None:
    """Removes a file, if it is there, so that no power cut brings it back after the next step.

    Raises:
        OSError: The file system refused.
    """
    remove(path)
    with suppress(FileNotFoundError):  # there is no such folder
        sync_folder(path.parent)  # also where the file is gone already: its remover may have been killed before this


def move(file: Path, path: Path) -> None:
    """Gives a whole file another name, in place of what is there.

    Raises:
        OSError: The file system refused.
        WriteError: The store refused.
    """
    with Sending(path, file) as sending, sending.naming():
        file.replace(path)


def remove(path: Path) -> None:
    """Removes a file, if it is there.

    Raises:
        OSError: The file system refused.
        WriteError: The store refused.
    """
    with removing(path):
        path.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, so that they survive a power cut.

    Raises:
        OSError: The file system refused.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Makes what was renamed, made or removed in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _prefix(path: Path) -> str:
    return f".{path.name}."
