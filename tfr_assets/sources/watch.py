"""Whether raw files changed, without reading any: their names, sizes and times, or what their store says of them."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress

from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.sources.files.paths import find_source_files
from tfr_assets.sources.mixed.parts import mixed_source
from tfr_assets.sources.model.kinds import TABLE
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.table_options import FORMATS
from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.raw_files import RawFile


def check_watchable(source: Source) -> None:
    """Makes sure that a source has files.

    Raises:
        ConfigError: It, or a part of it, is a Python function.
    """
    if function := called(source):
        raise ConfigError(
            f"watch: {function} is a Python function, and only running it shows whether its rows changed; "
            "set a `schedule` instead"
        )


def called(source: Source) -> str:
    """Returns the Python function that a source calls, itself or in a part of it; nothing if all of it is files."""
    return next((part.callable for part in _parts(source) if part.callable), "")


def on_this_machine(source: Source) -> bool:
    """Whether all that a source has are files of this machine, which may be listed often."""
    return not any(part.callable or is_remote(part.path or "") for part in _parts(source))


def files_state(source: Source) -> str:
    """Returns a hash that changes when a raw file is added, removed or written to.

    Raises:
        SourceError: There are no files.
    """
    state = hashlib.sha256()
    for file in source_files(source):
        state.update(f"{file.path}\0{file.info()}\n".encode())
    return state.hexdigest()[:32]


def source_files(source: Source) -> Iterator[RawFile]:
    """Yields the raw files of a source and of its parts, by their names alone.

    Raises:
        SourceError: There are none.
    """
    for part in _parts(source):
        if part.callable:
            continue
        # of photographs, recordings and texts, the ending says nothing: any format makes it a plain list of files
        follow = bool(part.options.get("follow_links"))
        listed = part if part.kind == TABLE else Source(path=part.path, format=FORMATS[0], follow_links=follow)
        yield from find_source_files(listed)


def part_with_data(source: Source) -> str:
    """Returns the first part of a mixed source that has raw files, or is a function and may have rows; else nothing."""
    for part in _parts(source) if source.kind == "mixed" else ():
        with suppress(SourceError):
            if part.callable or next(source_files(part), None):
                return str(part)
    return ""


def _parts(source: Source) -> Iterator[Source]:
    if source.kind != "mixed":
        yield source
        return
    for part in mixed_source(source).parts:
        yield part.source
