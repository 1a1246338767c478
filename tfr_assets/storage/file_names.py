"""What file names tell: format, compression, order, and which files are not data."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from tfr_assets.errors import SourceError

ENDINGS: Mapping[str, str] = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
_URL = re.compile(r"(?!(?:file|local)://)[a-z][a-z0-9+.-]*(?:://|::)", re.IGNORECASE)
COMPRESSION_ENDINGS = (".gz", ".bz2", ".xz", ".zst", ".zip")


def endings(path: str) -> tuple[str, str]:
    """Returns the lower-case endings of the format and of the compression, each empty if there is none."""
    name = PurePosixPath((urlsplit(path).path if is_http(path) else path).replace("\\", "/").lower())
    if name.suffix in COMPRESSION_ENDINGS:
        return PurePosixPath(name.stem).suffix, name.suffix
    return name.suffix, ""


def format_of(path: str) -> str | None:
    """Returns the format that a file's name tells, or None."""
    return ENDINGS.get(endings(path)[0])


def is_remote(path: str) -> bool:
    """Whether a path is a URL, or a chain of these, that fsspec reads, rather than a file on this machine."""
    return _URL.match(path) is not None


def is_http(path: str) -> bool:
    """Whether a path is a web address."""
    return path.startswith(("http://", "https://"))


def is_hidden(path: str) -> bool:
    """Whether a name in a folder or archive marks something else than data, such as `_SUCCESS` or `.DS_Store`."""
    return any(part.startswith((".", "_")) for part in path.split("/"))


def natural(path: str) -> list[tuple[int, str]]:
    """Returns a sort key by which "2" comes before "10", as people number files."""
    parts = re.split(r"([0-9]+)", path)
    return [(int(part), part) if at % 2 else (-1, part) for at, part in enumerate(parts)]


def zip_members(path: str, format_: str, names: Sequence[str]) -> list[str]:
    """Returns the files in a zip that hold data of a format, in natural order.

    Raises:
        SourceError: There are none.
    """
    members = sorted((name for name in names if not name.endswith("/") and not is_hidden(name)), key=natural)
    if len(members) > 1:  # a single file may have any name
        members = [name for name in members if format_of(name) == format_]
    if not members:
        raise SourceError(f"{path}: this zip holds no {format_} file. It holds: {', '.join(names[:5]) or 'nothing'}.")
    return members
