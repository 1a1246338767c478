"""Files that fsspec reaches."""

import glob
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfr_assets.errors import SourceError
from tfr_assets.sources.files.tree_local import split_pattern
from tfr_assets.storage.file_names import is_hidden, is_http
from tfr_assets.storage.raw_files import backend_errors, filesystem, reading


@dataclass(frozen=True)
class RemoteTree:
    """Files that fsspec reaches. Their listing is in memory as a whole, as fsspec gives it.

    Attributes:
        root: URL of the folder.
        pattern: Of files below it, or the name of one on a web server; None: all that are not hidden.
        storage_options: Passed to fsspec.
        threads: How many threads reading is spread over: many, as they wait most of the time.
        is_remote: True.
    """

    root: str
    pattern: str | None
    storage_options: Mapping[str, Any]
    threads: int = 16
    is_remote: bool = True

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        with backend_errors(self.root):
            return filesystem(self.root, self.storage_options)

    def path(self, file: str) -> str:
        """Returns the path of a file in its filesystem."""
        return f"{self._opened[1]}/{file}" if self._opened[1] else file

    def entries(self, unreadable: Callable[[str, str], None], leads_out: Callable[[str], None]) -> Iterator[str]:
        """Yields the path of every file; object stores have no folders of their own, and no links."""
        fs, root = self._opened
        with backend_errors(self.root):
            if self.pattern is None:
                listed = fs.find(root, detail=True)
            elif is_http(self.root):  # there, "?" begins a query
                listed = {self.path(self.pattern): fs.info(self.path(self.pattern))}
            else:
                listed = fs.glob(self.path(self.pattern), detail=True)
        for path, info in listed.items():
            file = path.removeprefix(root).lstrip("/")
            if info.get("type") != "directory" and (self.pattern is not None or not is_hidden(file)):
                yield file

    def read(self, file: str) -> bytes:
        """Returns a file's bytes."""
        with backend_errors(f"{self.root}/{file}"):
            return self._opened[0].cat_file(self.path(file))

    def read_many(self, files: list[str]) -> Iterator[bytes]:
        """Yields the bytes of files, which are fetched at once where the storage can do that.

        Raises:
            SourceChanged: A file is not there.
            SourceError: The storage fails.
        """
        paths = [self.path(file) for file in files]
        with backend_errors(self.root):
            found = self._opened[0].cat(paths, on_error="return")
        for file, path in zip(files, paths, strict=True):
            with reading(f"{self.root}/{file}"), backend_errors(f"{self.root}/{file}"):
                if isinstance(found[path], Exception):
                    raise found[path]
            yield found[path]


def remote_tree(url: str, storage_options: Mapping[str, Any]) -> RemoteTree:
    """Returns the tree that a URL means.

    Raises:
        SourceError: There is no such file or folder, or it cannot be reached.
    """
    if is_http(url):  # web servers have no listing to rely on
        root, _, name = url.rpartition("/")
        return RemoteTree(root, name, storage_options)
    first, chain, rest = url.partition("::")
    protocol = first.split("://")[0]
    with backend_errors(url):
        fs, path = filesystem(url, storage_options)
        fs.invalidate_cache()
        pattern: str | None
        if fs.isdir(path):
            root, pattern = path.rstrip("/"), None
        elif fs.isfile(path):
            root, _, name = path.rpartition("/")
            pattern = glob.escape(name)
        elif glob.has_magic(path):
            root, pattern = split_pattern(path)
        else:
            raise SourceError(f"{url}: there is no such file or folder.")
    return RemoteTree(f"{protocol}://{root}{chain}{rest}", pattern, storage_options)
