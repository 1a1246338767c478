"""Files on a local disk."""

import glob
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tfr_assets.errors import SourceError
from tfr_assets.sources.kinds import BadFileError
from tfr_assets.sources.names import is_hidden

OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # or the opening of a named pipe would wait for a writer


@dataclass(frozen=True)
class LocalTree:
    """Files on a local disk.

    Attributes:
        root: Absolute path of the folder.
        pattern: Of files below it; None: all that are not hidden.
        threads: How many threads reading is spread over.
        is_remote: False.
    """

    root: str
    pattern: str | None
    threads: int = min(4, os.cpu_count() or 1)
    is_remote: bool = False

    def entries(self, unreadable: Callable[[str, str], None]) -> Iterator[str]:
        """Yields the path of every file, and of folders if there is no pattern."""
        if self.pattern is None:
            yield from self._walk(unreadable)
        else:
            yield from glob.iglob(self.pattern, root_dir=self.root, recursive=True)  # noqa: PTH207

    def _walk(self, unreadable: Callable[[str, str], None]) -> Iterator[str]:
        pending: list[tuple[str, tuple[tuple[int, int], ...]]] = [("", ())]
        while pending:
            folder, above = pending.pop()
            full = f"{self.root}/{folder}"
            try:
                found = os.stat(full)  # noqa: PTH116
                here = (found.st_dev, found.st_ino)
                entries = os.scandir(full)
            except OSError as error:
                unreadable(folder, f"cannot be looked into: {error.strerror or error}")
                continue
            if here in above:
                raise SourceError(f"{full}: is a link to a folder that it lies in. Remove the link.")
            with entries:
                for entry in entries:
                    if is_hidden(entry.name):
                        continue
                    if _is_folder(entry):
                        pending.append((f"{folder}{entry.name}/", (*above, here)))
                        yield f"{folder}{entry.name}/"
                    else:
                        yield folder + entry.name

    def read(self, file: str) -> bytes:
        """Returns a file's bytes."""
        descriptor = os.open(f"{self.root}/{file}", OPEN)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise BadFileError("is a folder" if stat.S_ISDIR(found.st_mode) else "is not a regular file")
            data = os.read(descriptor, found.st_size + 1)
            while len(data) < found.st_size and (more := os.read(descriptor, found.st_size + 1 - len(data))):
                data += more  # one read gives 2 GiB at most
        finally:
            os.close(descriptor)
        if len(data) != found.st_size:
            raise BadFileError("changed while it was read")
        return data


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself; reading it as a file tells why
        return False


def local_tree(given: str) -> LocalTree:
    """Returns the tree that a local path means.

    Raises:
        SourceError: There is no such file or folder.
    """
    path = str(Path(given.removeprefix("file://").removeprefix("local://")).expanduser().absolute())
    if Path(path).is_dir():
        return LocalTree(path, None)
    if Path(path).is_file():
        folder, name = os.path.split(path)
        return LocalTree(folder, glob.escape(name))
    if glob.has_magic(path):
        return LocalTree(*split_pattern(path))
    raise SourceError(f"{given}: there is no such file or folder.")


def split_pattern(path: str) -> tuple[str, str]:
    """Returns the longest part of a pattern that has no wildcards, and the rest."""
    parts = path.split("/")
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:fixed]), "/".join(parts[fixed:])
