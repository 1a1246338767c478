"""Which files a source's path means: one file, all in a folder, or all that match a pattern; on disk or by URL."""

import glob
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from tfr_assets.errors import SourceError
from tfr_assets.sources.files.tree_local import LocalTree, split_pattern
from tfr_assets.sources.model.ignored import links_warning
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.table_options import FORMATS
from tfr_assets.storage.file_names import (
    COMPRESSION_ENDINGS,
    ENDINGS,
    endings,
    format_of,
    is_hidden,
    is_http,
    is_remote,
    natural,
)
from tfr_assets.storage.raw_files import RawFile, backend_errors, filesystem, reading


@dataclass(frozen=True)
class DataFiles:
    """What a source's path means.

    Attributes:
        files: The files, in natural order ("2" before "10").
        ignored: Files of a folder that are left out, because their ending is not that of a format.
        links: Files and folders that are left out, because they are links that lead out of the folder.
    """

    files: list[RawFile]
    ignored: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


def find_source_files(source: Source) -> list[RawFile]:
    """Returns the files that a source's path means. See `find_data`."""
    return find_data(source).files


def find_data(source: Source) -> DataFiles:
    """Returns the files of tables that a source's path means; of media, of which there are millions, `tree` finds them.

    In folders, names that begin with a dot or an underscore are skipped without a word, and, with no `format`
    given, files whose ending is not that of a format.

    Raises:
        SourceError: There are none, or files of several formats.
    """
    links: list[str] = []
    assert source.path
    if source.files is not None:
        found, is_folder = _given(source.path, source.files), False
    elif is_remote(source.path):
        found, is_folder = _on_web_or_store(source.path, source.storage_options)
    else:
        found, is_folder = _on_disk(source.path, source.follow_links, links)
    if source.format:
        return DataFiles([RawFile(path, source.format, source.storage_options) for path in found], links=links)
    ignored: list[str] = []
    formats = {path: format_of(path) or _format_inside(path) for path in found}
    if is_folder and any(formats.values()):
        ignored = [path for path, format_ in formats.items() if not format_]
        formats = {path: format_ for path, format_ in formats.items() if format_}
    counts: Counter[str] = Counter(format_ for format_ in formats.values() if format_)
    if unknown := [path for path, format_ in formats.items() if not format_]:
        raise SourceError(
            f"{unknown[0]}: its ending does not show its format. Known: {', '.join(ENDINGS)}, text also with "
            f"{', '.join(COMPRESSION_ENDINGS)}. Set `format:` to one of {', '.join(FORMATS)}, or name only the "
            "data's files."
        )
    if len(counts) > 1:
        several = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise SourceError(f"{source.path}: holds files of several formats: {several}. Use a pattern that picks one.")
    files = [RawFile(path, format_, source.storage_options) for path, format_ in formats.items() if format_]
    return DataFiles(files, ignored, links)


def first_folder(given: str, path: str) -> str | None:
    """Returns the first folder below a source's path that a file lies in, if any; a pattern starts where it varies."""
    fixed = []
    for part in given.removeprefix("file://").rstrip("/").split("/"):
        if glob.has_magic(part):
            break
        fixed.append(part)
    base = Path("/".join(fixed)).expanduser() if "://" not in given else PurePosixPath("/".join(fixed))
    base = base.absolute() if isinstance(base, Path) else base
    below = PurePosixPath(path).relative_to(base).parts if PurePosixPath(path).is_relative_to(base) else ()
    return below[0] if len(below) > 1 else None


def _on_disk(given: str, follow_links: bool, links: list[str]) -> tuple[list[str], bool]:
    """Returns the files, and whether they were found by looking into a folder; notes links that are not followed."""
    path = Path(given.removeprefix("file://").removeprefix("local://")).expanduser().absolute()
    if path.is_file():
        return [str(path)], False
    if path.is_dir():
        tree = LocalTree(str(path), None, follow_links, hidden=True)
        entries = tree.entries(_refuse_folder(path), _noting(links, path))
        listed = {f"{path}/{entry}": entry for entry in entries if entry.endswith("_delta_log/") or entry[-1] != "/"}
        return _data_files(given, listed, links), True
    if glob.has_magic(str(path)):
        tree = LocalTree(*split_pattern(str(path)), follow_links)
        matches = [f"{tree.root}/{entry}" for entry in tree.entries(_refuse_folder(path), _noting(links, tree.root))]
        files = [match for match in matches if Path(match).is_file()]
        return _ordered(given, files, "no file matches this pattern", links), False
    raise SourceError.of_no_data(f"{given}: there is no such file or folder (looked for {path}).")


def _given(given: str, files: Sequence[str]) -> list[str]:
    """Returns files that are known by name, if they are there; of those behind URLs, reading tells."""
    gone = [path for path in files if not is_remote(path) and not Path(path).is_file()]
    if gone and len(gone) < len(files):
        raise SourceError(f"{gone[0]}: is gone, one of {len(files)} files that belong together; put it back.")
    return _ordered(given, [] if gone else files, "all files that belong together are gone")


def _refuse_folder(root: Path) -> Callable[[str, str], NoReturn]:
    def refuse(folder: str, reason: str) -> NoReturn:
        raise SourceError(f"{root}/{folder}: {reason}.")

    return refuse


def _noting(links: list[str], root: Path | str) -> Callable[[str], None]:
    def note(entry: str) -> None:
        if not is_hidden(entry):
            links.append(f"{root}/{entry}")

    return note


def _on_web_or_store(given: str, storage_options: Mapping[str, Any]) -> tuple[list[str], bool]:
    if is_http(given) or "::" in given:
        return [given], False  # web servers have no listing to rely on; "?" begins a query there
    with backend_errors(given):
        fs, path = filesystem(given, storage_options)
        fs.invalidate_cache()
        if fs.isfile(path):
            return [given], False
        if fs.isdir(path):
            listed = {fs.unstrip_protocol(found): found.removeprefix(path).lstrip("/") for found in fs.find(path)}
            return _data_files(given, listed), True
        if glob.has_magic(path):
            matches = [fs.unstrip_protocol(match) for match in fs.glob(path) if fs.isfile(match)]
            return _ordered(given, matches, "no file matches this pattern"), False
    raise SourceError.of_no_data(f"{given}: there is no such file or folder.")


def _data_files(given: str, listed: Mapping[str, str], links: Sequence[str] = ()) -> list[str]:
    """Returns the files of a folder that hold data; `listed` maps each to its path within the folder."""
    if any("_delta_log/" in relative for relative in listed.values()):
        raise SourceError(
            f"{given}: is a Delta table, whose folder also holds deleted rows. Read it by a `callable` "
            "(with the deltalake package), or name its files by a pattern."
        )
    for relative in listed.values():
        if folder := next((part for part in relative.split("/")[:-1] if "=" in part), None):
            raise SourceError(
                f"{given}: the folder name {folder!r} is the value of a column, which is not read from there. Use a "
                "pattern such as `folder/**/*.parquet` if the column is not needed, otherwise a `callable`."
            )
    visible = [path for path, relative in listed.items() if not is_hidden(relative)]
    return _ordered(given, visible, "there are no files in this folder", links)


def _ordered(given: str, paths: Iterable[str], otherwise: str, links: Sequence[str] = ()) -> list[str]:
    if not (ordered := sorted(paths, key=natural)):
        raise SourceError.of_no_data(f"{given}: {otherwise}. {links_warning(len(links))}".rstrip())
    return ordered


def _format_inside(path: str) -> str | None:
    """Returns the format of the files in a local `data.zip`, if they agree on one."""
    if endings(path)[1] != ".zip" or "://" in path:
        return None
    with reading(path), zipfile.ZipFile(path) as archive:
        inside: Sequence[str | None] = [format_of(name) for name in archive.namelist() if not is_hidden(name)]
    formats = {format_ for format_ in inside if format_}
    return formats.pop() if len(formats) == 1 else None
