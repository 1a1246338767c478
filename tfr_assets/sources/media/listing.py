"""A folder of files → a listing, in natural order and bounded memory."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfr_assets.errors import SourceError
from tfr_assets.sources.files.tree import Tree, tree_of
from tfr_assets.sources.media.file_rows import (
    CLASS_AT,
    COLUMNS,
    SIZE_AT,
    Medium,
    Row,
    batch_of,
    look_at_all,
)
from tfr_assets.sources.media.labelling import Labeller, labeller_of, stem
from tfr_assets.sources.media.labels import class_names, label_key
from tfr_assets.sources.media.sorted_names import SortedNames
from tfr_assets.sources.model.ignored import Ignored
from tfr_assets.sources.model.kinds import BadFileError, Found
from tfr_assets.sources.model.label_options import LabelOptions

if TYPE_CHECKING:
    from tfr_assets.sources.model.source import Source

REMEDY = "Repair or remove it, or set `on_error: skip` to leave out whatever is bad."


def list_files(
    source: "Source",
    medium: Medium,
    labels: LabelOptions,
    skip: bool,
    work: Path,
    found: Found,
    follow_links: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yields one row per file, in natural order of their paths below the source's folder.

    Columns: .file .key (base name without ending) .split .class .bytes .crc32c .sha256, and the medium's facts.
    `found.classes` gets the classes' names under `PREFIX/class/label` if rows have labels.

    Args:
        source: What to list: a folder, a glob, a file, or an fsspec URL of these.
        medium: Which files, and what to look for in them.
        labels: Where classes come from.
        skip: Whether bad files are left out (`on_error: skip`) rather than an error.
        work: An existing folder for temporary files.
        found: Filled meanwhile.
        follow_links: Whether links are followed that lead out of the source's folder.

    Raises:
        SourceError: There are no such files, or a file is bad and `skip` is False.
    """
    assert source.path
    tree = tree_of(source.path, source.storage_options, follow_links)
    ignored = found.ignored(medium.endings, _article(medium.noun))
    listing = _Listing(source.path, tree, medium, source.splits.folder if source.splits else (), skip, found, ignored)
    schema = pa.schema([*(pa.field(*column) for column in COLUMNS), *medium.facts])
    yield batch_of([], schema)
    files, folders = listing.files_and_folders(work)
    labeller = listing.labeller(labels, files, folders, source.storage_options)
    classes: set[str] = set()
    listed = 0
    for rows in listing.rows(files, labeller):
        classes.update(row[CLASS_AT] for row in rows if row[CLASS_AT] is not None)
        listed += len(rows)
        yield batch_of(rows, schema)
    if not listed:
        file, reason = found.first_skipped[0]
        raise SourceError(f"{source.path}: no {medium.noun} of it can be used. The first, {file}: {reason}.")
    if classes:
        found.classes[label_key(medium.prefix)] = class_names(classes, labels)


@dataclass(frozen=True)
class _Listing:
    path: str  # as the user named it
    tree: Tree
    medium: Medium
    splits: tuple[str, ...]  # folders
    skip: bool
    found: Found
    ignored: Ignored

    def bad(self, file: str, reason: str) -> None:
        """Leaves a file out, or ends the listing with an error."""
        if not self.skip:
            raise SourceError(f"{self.tree.root}/{file}: {reason}. {REMEDY}")
        self.found.skip(file, reason)

    def leads_out(self, path: str) -> None:
        """Leaves out a link that leads out of the source's folder."""
        if path.endswith("/") or self._fits(path):
            self.ignored.add_link(path)
        else:
            self.ignored.add(path)

    def _fits(self, path: str) -> bool:
        return path[path.rfind(".") :].lower() in self.medium.endings

    def files_and_folders(self, work: Path) -> tuple[SortedNames, set[str]]:
        """Returns all files with the medium's endings, and the folders that may be classes'.

        Raises:
            SourceError: There are none.
        """
        folders: set[str] = set()
        depth = 2 if self.splits else 1

        def fitting() -> Iterator[str]:
            for path in self.tree.entries(self.bad, self.leads_out):
                if not path.isprintable() and (shown := _shown(path)) != path:
                    self.bad(shown, "its name is not UTF-8 text")
                elif path.endswith("/"):
                    if path.count("/") == depth:
                        folders.add(path)
                elif self._fits(path):
                    yield path
                else:
                    self.ignored.add(path)

        files = SortedNames(fitting(), work)
        if not files.count:
            looked = f"no {self.medium.noun} is there: looked for {', '.join(self.medium.endings)}"
            raise SourceError.of_no_data(f"{self.path}: {looked}; found {self.ignored}.")
        self.found.warn_of(self.ignored)
        return files, folders

    def labeller(
        self, labels: LabelOptions, files: SortedNames, folders: set[str], storage_options: Mapping[str, Any]
    ) -> Labeller:
        """Returns what names files' classes, after a look at all names: what they contradict is reported at once."""

        def placed(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
            for path in paths:
                with suppress(BadFileError):  # reported below
                    yield path, self._place(path)[1]

        every = placed(files)
        labeller = labeller_of(labels, self.tree.root, every, placed(folders), storage_options)
        for what, reason in labeller.missing():
            if not self.skip:
                raise SourceError(f"{what}: {reason}.")
            self.found.skip(what, reason)
        splits = set(self.splits)
        for file in files:
            try:
                splits.discard(str(self._head(file, labeller)[2]))
            except BadFileError as error:
                if not self.skip:
                    self.bad(file, str(error))
        if splits:
            said = f"holds no {self.medium.noun}, but `splits` names it. {self.ignored.links_warning()}"
            raise SourceError(f"{self.tree.root}/{min(splits)}: {said.rstrip()}")
        return labeller

    def _place(self, path: str) -> tuple[str | None, str]:
        """Returns the split of a file or folder, and its path below the split's folder."""
        if not self.splits:
            return None, path
        split, _, below = path.partition("/")
        if split not in self.splits or not below:
            raise BadFileError(f"is in none of the folders that are splits ({', '.join(self.splits)})")
        return split, below

    def _head(self, file: str, labeller: Labeller) -> Row:
        split, below = self._place(file)
        return file, stem(file), split, labeller.of(file, below)

    def rows(self, files: SortedNames, labeller: Labeller) -> Iterator[list[Row]]:
        """Yields rows, those of some files at a time, in order."""
        done = 0
        for rows, bad in look_at_all(self.tree, self.medium, self._heads(files, labeller)):
            for file, reason in bad:
                self.bad(file, reason)
            done += len(rows) + len(bad)
            self.found.files += len(rows)
            self.found.bytes += sum(row[SIZE_AT] for row in rows)
            self.found.progress(done, files.count)
            yield rows

    def _heads(self, files: SortedNames, labeller: Labeller) -> Iterator[Row]:
        for file in files:
            try:
                yield self._head(file, labeller)
            except BadFileError as error:
                self.bad(file, str(error))


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
