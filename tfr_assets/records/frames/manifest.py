"""The manifest: what a TFRecord file must hold and what it was made from.

A file without a manifest that matches it does not count as written, so a writer removes the old manifest first
and writes the new one last. A manifest carries its own checksum, too (`storage.sealed`), and names its file: one that
is damaged, of another format or of another file is invalid.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from tfr_assets.layout import manifest_path
from tfr_assets.records.frames.compression import COMPRESSIONS
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.sealed import seal, unseal
from tfr_assets.units import MAX_RECORD_BYTES

FORMAT = 2
FRAMING = 16  # bytes of a frame besides its record
_DIGEST, _CRC = re.compile("[0-9a-f]{16}"), re.compile("[0-9a-f]{8}")
_LARGEST = 2**63 - 1
_T = TypeVar("_T")
_Content = bytes  # inside of `Manifest`, `bytes` is a number


@dataclass(frozen=True)
class Mark:
    """A place between two records, and what lies before it.

    Attributes:
        records: Number of records before it.
        bytes: Where it is in the file's stream, decompressed.
        digest: Digest over the records before it.
    """

    records: int
    bytes: int
    digest: int


START = Mark(0, 0, 0)


@dataclass(frozen=True)
class IndexChecksum:
    """What shows whether an index is the one that was written.

    Attributes:
        bytes: Size of its file.
        crc32c: CRC32C of its file.
    """

    bytes: int
    crc32c: int


@dataclass(frozen=True)
class Manifest:
    """What one file must hold.

    Attributes:
        file: The file's name, without folder.
        records: Number of records.
        bytes: Size of the file.
        payload_bytes: Size of the records alone, without framing and compression.
        compression: `none`, `gzip` or `zlib`.
        digest: 16 hex digits over the lengths and CRCs of all records in order; see `records.kernels.digest`.
        features: How a record is parsed; None for records that are no tf.Examples.
        made_from: Everything that determines the content: the inventory's fingerprint, rows, settings, code version.
        marks: Places inside the file, in order and at least `records.frames.marks.SPAN` bytes apart, so that a part of
            the file can be compared with the manifest without reading the rest.
        index: The index beside the file; None: there is none.
    """

    file: str
    records: int
    bytes: int
    payload_bytes: int
    compression: str
    digest: str
    features: FeatureSpec | None
    made_from: dict[str, Any] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()
    index: IndexChecksum | None = None

    @property
    def stream_bytes(self) -> int:
        """Size of the file, decompressed."""
        return self.payload_bytes + FRAMING * self.records

    @property
    def bounds(self) -> tuple[Mark, ...]:
        """All places where the digest is known: the start, the marks, the end."""
        return (START, *self.marks, Mark(self.records, self.stream_bytes, int(self.digest, 16)))

    @property
    def max_record_bytes(self) -> int:
        """Limit of a record's length when the file is read: beyond the usual one, if so many bytes were written."""
        return max(MAX_RECORD_BYTES, self.payload_bytes)

    def save(self, path: Path) -> None:
        """Writes the manifest of the file at `path`, atomically."""
        write_atomically(manifest_path(path), self.to_json())

    def to_json(self) -> _Content:
        """Returns what the manifest's file holds."""
        values = {**vars(self), "format": FORMAT}
        values["features"] = self.features and self.features.to_json()
        values["marks"] = [[mark.records, mark.bytes, f"{mark.digest:016x}"] for mark in self.marks]
        values["index"] = self.index and [self.index.bytes, f"{self.index.crc32c:08x}"]
        return seal(values, sort=True)

    @staticmethod
    def load(path: Path) -> "Manifest | None":
        """Returns the manifest of the file at `path`, or None where there is none that can be read as one."""
        try:
            return Manifest.from_json(manifest_path(path).read_bytes(), path.name)
        except OSError:
            return None  # an unreadable manifest is invalid: the file is written or refused as if it had none

    @staticmethod
    def from_json(content: _Content | str, file: str | None = None) -> "Manifest | None":
        """Returns the manifest that a file holds.

        Args:
            content: The manifest's file.
            file: Name of the file it must be of; None takes any.

        Returns:
            None where it is damaged, of another format, or of a file of another name: then it is invalid.
        """
        values = unseal(content.encode() if isinstance(content, str) else content)
        if values is None or values.pop("format", None) != FORMAT:
            return None
        try:
            manifest = _read(**values)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):  # an entry is missing, new or mistyped
            return None
        return manifest if file in (None, manifest.file) else None


def manifest_problem(path: Path) -> str | None:
    """Returns why the manifest of the file at `path` is invalid; None where it is valid, or there is none."""
    if Manifest.load(path) or not manifest_path(path).exists():
        return None
    try:
        other = Manifest.from_json(manifest_path(path).read_bytes())
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if other:
        return f"it is that of {other.file}, so that the file was copied or renamed"
    return "it is damaged, or of another version of this program"


def _read(
    file: str, records: int, bytes: int, payload_bytes: int, compression: str, digest: str,
    features: list[dict[str, Any]] | None, made_from: dict[str, Any], marks: list[Any], index: list[Any] | None,
) -> Manifest:  # fmt: skip
    """Returns a manifest of parsed entries; raises what invalid entries cause."""
    known = list(COMPRESSIONS)
    manifest = Manifest(
        file=_of(str, file),
        records=_count(records),
        bytes=_count(bytes),
        payload_bytes=_count(payload_bytes),
        compression=known[known.index(compression)],
        digest=f"{_hex(_DIGEST, digest):016x}",
        features=None if features is None else FeatureSpec.from_json(features),
        made_from=_of(dict, made_from),
        marks=tuple(Mark(_count(n), _count(at), _hex(_DIGEST, so_far)) for n, at, so_far in marks),
        index=None if index is None else _index(*index),
    )
    if manifest.features and made_from.get("features", manifest.features.fingerprint) != manifest.features.fingerprint:
        raise ValueError("its records are not parsed by what it was made from")
    for mark, following in pairwise(manifest.bounds):
        if manifest.marks and not (mark.records < following.records and mark.bytes < following.bytes):
            raise ValueError("marks are not in order")
    return manifest


def _index(size: int, crc32c: str) -> IndexChecksum:
    return IndexChecksum(_count(size), _hex(_CRC, crc32c))


def _of(kind: type[_T], value: object) -> _T:
    if not isinstance(value, kind):
        raise TypeError(value)
    return value


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise ValueError(value)
    return value


def _hex(form: re.Pattern[str], value: str) -> int:
    if not form.fullmatch(value):
        raise ValueError(value)
    return int(value, 16)
