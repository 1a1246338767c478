"""From a file to the name of its class."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tfr_assets.errors import SourceError
from tfr_assets.option_groups import did_you_mean
from tfr_assets.sources.media.label_table import read_label_table
from tfr_assets.sources.model.kinds import BadFileError
from tfr_assets.sources.model.label_options import LabelOptions


def stem(file: str) -> str:
    """Returns a path's base name without its last ending."""
    name = file.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def check_class(name: str | None, classes: tuple[str, ...] | None) -> None:
    """Raises BadFileError if a class is not one of the pinned ones."""
    if classes is not None and name not in classes:
        raise BadFileError(f"its class {name!r} is not one of `classes`{did_you_mean(name, classes)}")


class Labeller(Protocol):
    """Tells files' classes."""

    def of(self, file: str, below: str) -> str | None:
        """Returns the name of a file's class; None if there are no labels.

        Args:
            file: Its path below the source's folder.
            below: Its path below its split's folder, or the same where splits are not folders.

        Raises:
            BadFileError: It is unknown.
        """

    def missing(self) -> Iterator[tuple[str, str]]:
        """Yields what should have had files but has none: what it is, and a reason."""


def labeller_of(
    options: LabelOptions,
    root: str,
    files: Iterable[tuple[str, str]],
    folders: Iterable[tuple[str, str]],
    storage_options: Mapping[str, Any],
) -> Labeller:
    """Returns what names the classes of files.

    A label table is held in memory as a whole; nothing else here grows with the number of files.

    Args:
        options: Where classes come from.
        root: The source's folder, for messages.
        files: (file, below) of all files, as `Labeller.of` takes them.
        folders: (folder, below) of all folders; those that can be classes' have one name below their split's.
        storage_options: For reading a table.

    Raises:
        SourceError: There is no folder that could name a class, or the table cannot be used.
    """
    if options.by == "pattern" and options.pattern:
        return _Pinned(_ByPattern(options.pattern), options.classes)
    if options.by == "table":
        return _Pinned(_ByTable(options, files, storage_options), options.classes)
    if options.by != "none":
        by_folder = _ByFolder(root)
        for file, below in files:
            by_folder.see(file, below)
        by_folder.folders.update(folder for folder, below in folders if below.count("/") == 1)
        if options.by == "folder" and not by_folder.classes:
            raise SourceError(f"{root}: `labels: folder`, but no file lies in a folder that could name its class.")
        if by_folder.classes:
            return _Pinned(by_folder, options.classes)
    return _Unlabelled()


class _Unlabelled:
    def of(self, file: str, below: str) -> str | None:
        return None

    def missing(self) -> Iterator[tuple[str, str]]:
        return iter(())


@dataclass(frozen=True)
class _Pinned:
    """Another labeller, whose classes must be among the pinned ones."""

    labeller: Labeller
    classes: tuple[str, ...] | None

    def of(self, file: str, below: str) -> str | None:
        found = self.labeller.of(file, below)
        check_class(found, self.classes)
        return found

    def missing(self) -> Iterator[tuple[str, str]]:
        return self.labeller.missing()


@dataclass
class _ByFolder:
    root: str
    classes: set[str] = field(default_factory=set)  # folders that hold files
    folders: set[str] = field(default_factory=set)

    def see(self, file: str, below: str) -> None:
        name, inside, _ = below.partition("/")
        if inside:
            self.classes.add(file.removesuffix(below) + name)

    def of(self, file: str, below: str) -> str | None:
        name, inside, _ = below.partition("/")
        if not inside:
            raise BadFileError(
                "is beside folders that name classes. Move it into one of them, or set `labels: none` if the folders "
                "do not name classes"
            )
        return name

    def missing(self) -> Iterator[tuple[str, str]]:
        for folder in sorted(folder.rstrip("/") for folder in self.folders):
            if folder not in self.classes:
                yield f"{self.root}/{folder}", "holds no file of this class; fill it, remove it, or set `labels: none`"


@dataclass(frozen=True)
class _ByPattern:
    pattern: re.Pattern[str]

    def of(self, file: str, below: str) -> str | None:
        match = self.pattern.search(file.rpartition("/")[2])
        found = match and match["label" if "label" in self.pattern.groupindex else 1]
        if not found:
            raise BadFileError(f"its name does not show its class: it does not match {self.pattern.pattern!r}")
        return found

    def missing(self) -> Iterator[tuple[str, str]]:
        return iter(())


class _ByTable:
    def __init__(
        self, options: LabelOptions, files: Iterable[tuple[str, str]], storage_options: Mapping[str, Any]
    ) -> None:
        self._where = options.table
        files_said, self._labels = read_label_table(options, storage_options)
        self._rows: dict[str, int] = {}
        for row, file in enumerate(files_said.to_pylist()):
            if (other := self._rows.setdefault(file, row)) != row:
                raise SourceError(f"{self._where}: {file!r} occurs twice, in rows {other + 1} and {row + 1}.")
        self._files = bytearray(len(self._labels))  # how many each row is for, up to 2
        for file, below in files:
            if (at := self._row(file, below)) is not None:
                self._files[at] = min(self._files[at] + 1, 2)

    def _row(self, file: str, below: str) -> int | None:
        for name in (file, below, below.rpartition("/")[2], stem(file)):
            if (row := self._rows.get(name)) is not None:
                return row
        return None

    def of(self, file: str, below: str) -> str | None:
        row = self._row(file, below)
        if row is None:
            raise BadFileError(f"{self._where} has no row for it")
        if self._files[row] > 1:
            raise BadFileError(
                f"its row in {self._where}, row {row + 1}, is that of another file, too. Name files there by their "
                "paths below the source's folder"
            )
        return str(self._labels[row])

    def missing(self) -> Iterator[tuple[str, str]]:
        for file, row in self._rows.items():
            if not self._files[row]:
                yield f"{self._where}: row {row + 1}", f"there is no file {file!r}; bring it back or remove the row"
