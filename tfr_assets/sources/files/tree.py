"""What a source's path means: a root folder, and the files below it, on disk or by URL."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from tfr_assets.sources.files.tree_local import local_tree
from tfr_assets.sources.files.tree_remote import remote_tree
from tfr_assets.storage.file_names import is_remote


class Tree(Protocol):
    """A root folder, and which files below it belong to the source."""

    @property
    def root(self) -> str:
        """Local path or URL of the folder that files' paths are below."""

    @property
    def threads(self) -> int:
        """How many threads reading is spread over, at most."""

    @property
    def is_remote(self) -> bool:
        """Whether reading a file is mostly waiting."""

    def entries(self, unreadable: Callable[[str, str], None], leads_out: Callable[[str], None]) -> Iterator[str]:
        """Yields the path of every file, in no order, and of folders, whose paths end in "/".

        Args:
            unreadable: Called with the path of a folder that cannot be looked into, and the reason.
            leads_out: Called with the path of each link that is not followed, because it leads out of the root.
        """

    def read(self, file: str) -> bytes:
        """Returns the bytes of a file, given by its path below the root.

        Raises:
            BadFileError: It is no regular file, or changes meanwhile.
            OSError: It cannot be read.
            SourceError: The storage it lies on fails.
        """


def tree_of(path: str, storage_options: Mapping[str, Any], follow_links: bool = False) -> Tree:
    """Returns the tree that a source's path means: a folder, a glob, a file, or an fsspec URL of these.

    In a folder, names that begin with a dot or an underscore are skipped. Links on a local disk that lead out of
    the folder are followed only with `follow_links`: whoever may write there could otherwise have any file read.

    Raises:
        SourceError: There is no such file or folder.
    """
    return remote_tree(path, storage_options) if is_remote(path) else local_tree(path, follow_links)


def root_of(path: str, storage_options: Mapping[str, Any]) -> str:
    """Returns the folder, a local path or a URL, that the `.file` paths of a source's listing are below.

    For a folder it is the folder; for a file, the one it lies in; for a glob, the longest part without wildcards.

    Raises:
        SourceError: There is no such file or folder.
    """
    return tree_of(path, storage_options).root
