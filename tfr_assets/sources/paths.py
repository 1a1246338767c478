"""Which files a source's path means: one file, all in a folder, or all that match a pattern; on disk or by URL."""

import glob
import os
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tfr_assets.errors import SourceError
from tfr_assets.sources.files import RawFile, backend_errors, filesystem, reading
from tfr_assets.sources.names import COMPRESSIONS, ENDINGS, endings, format_of, is_hidden, is_http, natural
from tfr_assets.sources.source import FORMATS, Source


def find_files(source: Source) -> list[RawFile]:
    """Returns the files that a source's path means. See `find_data`."""
    return find_data(source)[0]


def find_data(source: Source) -> tuple[list[RawFile], list[str]]:
    """Returns the files that a source's path means, in natural order ("2" before "10"), and those that are ignored.

    In folders, names that begin with a dot or an underscore are passed over, and, with no `format` given, files
    whose ending is not that of a format; these alone are returned as ignored.

    Raises:
        SourceError: There are none, or files of several formats.
    """
    assert source.path
    if "::" in source.path or ("://" in source.path and not source.path.startswith(("file://", "local://"))):
        found, is_folder = _on_web_or_store(source.path, source.storage_options)
    else:
        found, is_folder = _on_disk(source.path)
    if source.format:
        return [RawFile(path, source.format, source.storage_options) for path in found], []
    ignored: list[str] = []
    formats = {path: format_of(path) or _format_inside(path) for path in found}
    if is_folder and any(formats.values()):
        ignored = [path for path, format_ in formats.items() if not format_]
        formats = {path: format_ for path, format_ in formats.items() if format_}
    counts: Counter[str] = Counter(format_ for format_ in formats.values() if format_)
    if unknown := [path for path, format_ in formats.items() if not format_]:
        raise SourceError(
            f"{unknown[0]}: its ending does not tell its format. Known: {', '.join(ENDINGS)}, text also with "
            f"{', '.join(COMPRESSIONS)}. Say `format:` with one of {', '.join(FORMATS)}, or name only the data's files."
        )
    if len(counts) > 1:
        several = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise SourceError(f"{source.path}: holds files of several formats: {several}. Use a pattern that picks one.")
    return [RawFile(path, format_, source.storage_options) for path, format_ in formats.items() if format_], ignored


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


def _on_disk(given: str) -> tuple[list[str], bool]:
    """Returns the files, and whether they were found by looking into a folder."""
    path = Path(given.removeprefix("file://").removeprefix("local://")).expanduser().absolute()
    if path.is_file():
        return [str(path)], False
    if path.is_dir():
        listed = {
            str(Path(folder, name)): Path(folder, name).relative_to(path).as_posix()
            for folder, _, names in os.walk(path, followlinks=True)
            for name in names
        }
        return _data_files(given, listed), True
    if glob.has_magic(str(path)):
        matches = [match for match in glob.glob(str(path), recursive=True) if Path(match).is_file()]  # noqa: PTH207
        return _ordered(given, matches, "no file matches this pattern"), False
    raise SourceError(f"{given}: there is no such file or folder (looked for {path}).")


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
    raise SourceError(f"{given}: there is no such file or folder.")


def _data_files(given: str, listed: Mapping[str, str]) -> list[str]:
    """Returns the files of a folder that hold data; `listed` maps each to its path within the folder."""
    if any("_delta_log/" in relative for relative in listed.values()):
        raise SourceError(
            f"{given}: is a Delta table, whose folder also holds deleted rows. Read it by a `callable` "
            "(with the deltalake package), or name its files by a pattern."
        )
    for relative in listed.values():
        if folder := next((part for part in relative.split("/")[:-1] if "=" in part), None):
            raise SourceError(
                f"{given}: the folder name {folder!r} tells the value of a column, which is not read from there. Use a "
                "pattern such as `folder/**/*.parquet` if the column is not needed, otherwise a `callable`."
            )
    visible = [path for path, relative in listed.items() if not is_hidden(relative)]
    return _ordered(given, visible, "there are no files in this folder")


def _ordered(given: str, paths: Iterable[str], otherwise: str) -> list[str]:
    if not (ordered := sorted(paths, key=natural)):
        raise SourceError(f"{given}: {otherwise}.")
    return ordered


def _format_inside(path: str) -> str | None:
    """Returns the format of the files in a local `data.zip`, if they agree on one."""
    if endings(path)[1] != ".zip" or "://" in path:
        return None
    with reading(path), zipfile.ZipFile(path) as archive:
        inside: Sequence[str | None] = [format_of(name) for name in archive.namelist() if not is_hidden(name)]
    formats = {format_ for format_ in inside if format_}
    return formats.pop() if len(formats) == 1 else None
