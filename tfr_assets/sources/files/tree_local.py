"""Files on a local disk."""

import glob
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tfr_assets.errors import SourceError
from tfr_assets.sources.model.kinds import BadFileError
from tfr_assets.storage.file_names import is_hidden

OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # or the opening of a named pipe would wait for a writer


@dataclass(frozen=True)
class LocalTree:
    """Files on a local disk.

    Attributes:
        root: Absolute path of the folder.
        pattern: Of files below it; None: all that are not hidden.
        follow_links: Whether links are followed that lead out of the folder.
        hidden: Whether names that begin with a dot or an underscore count, where there is no pattern; such folders are
            not looked into in any case.
        threads: How many threads reading is spread over.
        is_remote: False.
    """

    root: str
    pattern: str | None
    follow_links: bool = False
    hidden: bool = False
    threads: int = min(4, os.cpu_count() or 1)
    is_remote: bool = False

    def entries(self, unreadable: Callable[[str, str], None], leads_out: Callable[[str], None]) -> Iterator[str]:
        """Yields the path of every file, and of folders if there is no pattern."""
        stays: Callable[[str], bool] = (lambda path: True) if self.follow_links else _Inside(self.root)
        if self.pattern is None:
            yield from self._walk(unreadable, leads_out, stays)
            return
        for path in glob.iglob(self.pattern, root_dir=self.root, recursive=True):  # noqa: PTH207
            if stays(path):
                yield path
            else:
                leads_out(path)

    def _walk(
        self, unreadable: Callable[[str, str], None], leads_out: Callable[[str], None], stays: Callable[[str], bool]
    ) -> Iterator[str]:
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
                    if is_hidden(entry.name) and not self.hidden:
                        continue
                    path = f"{folder}{entry.name}/" if _is_folder(entry) else folder + entry.name
                    if entry.is_symlink() and not stays(folder + entry.name):
                        leads_out(path)
                        continue
                    if path.endswith("/") and not is_hidden(entry.name):
                        pending.append((path, (*above, here)))
                    yield path

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


class _Inside:
    """Whether paths below a folder stay in it once all links are followed. Keeps the last path's folder."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._real = os.path.realpath(root)
        self._folder, self._folder_stays = "", True

    def __call__(self, path: str) -> bool:
        folder = os.path.dirname(path)  # noqa: PTH120 - paths are text here: there may be millions
        if folder != self._folder:
            self._folder, self._folder_stays = folder, self._contains(folder)
        if os.path.islink(f"{self._root}/{path}"):  # noqa: PTH114
            return self._contains(path)
        return self._folder_stays

    def _contains(self, path: str) -> bool:
        real = os.path.realpath(f"{self._root}/{path}")
        return real == self._real or real.startswith(f"{self._real.rstrip('/')}/")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself; reading it as a file tells why
        return False


def local_tree(given: str, follow_links: bool = False) -> LocalTree:
    """Returns the tree that a local path means. What the path itself names is followed in any case.

    Raises:
        SourceError: There is no such file or folder.
    """
    path = str(Path(given.removeprefix("file://").removeprefix("local://")).expanduser().absolute())
    if Path(path).is_dir():
        return LocalTree(path, None, follow_links)
    if Path(path).is_file():
        folder, name = os.path.split(path)
        return LocalTree(folder, glob.escape(name), follow_links=True)
    if glob.has_magic(path):
        return LocalTree(*split_pattern(path), follow_links)
    raise SourceError.of_no_data(f"{given}: there is no such file or folder.")


def split_pattern(path: str) -> tuple[str, str]:
    """Returns the longest part of a pattern that has no wildcards, and the rest."""
    parts = path.split("/")
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:fixed]), "/".join(parts[fixed:])
