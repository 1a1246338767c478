"""The manifest: what a TFRecord file must hold and what it was made from.

A file without a manifest that matches it does not count as written, so whoever replaces a file removes the old manifest
first and writes the new one last.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tfr_assets.layout import manifest_path
from tfr_assets.records.features import FeatureSpec
from tfr_assets.records.files import write_atomically
from tfr_assets.records.units import MAX_RECORD_BYTES

FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """What one file must hold.

    Attributes:
        file: The file's name, without folder.
        records: Number of records.
        bytes: Size of the file.
        payload_bytes: Size of the records alone, without framing and compression.
        compression: `none`, `gzip` or `zlib`.
        digest: 16 hex digits over the lengths and CRCs of all records in order; see `records.digest`.
        features: How a record is parsed; None for records that are no tf.Examples.
        made_from: Whatever decides over the content: the inventory's fingerprint, rows, settings, code version.
    """

    file: str
    records: int
    bytes: int
    payload_bytes: int
    compression: str
    digest: str
    features: FeatureSpec | None
    made_from: dict[str, Any] = field(default_factory=dict)

    @property
    def max_record_bytes(self) -> int:
        """Limit of a record's length when the file is read: beyond the usual one, if so many bytes were written."""
        return max(MAX_RECORD_BYTES, self.payload_bytes)

    def save(self, path: Path) -> None:
        """Writes the manifest of the file at `path`, atomically."""
        values = asdict(self) | {"features": self.features and self.features.to_json(), "format": FORMAT}
        write_atomically(manifest_path(path), (json.dumps(values, indent=1, sort_keys=True) + "\n").encode())

    @staticmethod
    def load(path: Path) -> "Manifest | None":
        """Returns the manifest of the file at `path`, or None where there is none that can be read as one."""
        try:
            return Manifest.from_json(manifest_path(path).read_text())
        except (OSError, UnicodeDecodeError):
            return None  # an unreadable manifest vouches for nothing: the file is written or refused as if it had none

    @staticmethod
    def from_json(text: str) -> "Manifest | None":
        """Returns the manifest in a file's text, or None where that is none."""
        try:
            values = json.loads(text)
            if values.pop("format") != FORMAT:
                return None
            features = values.pop("features")
            return Manifest(**values, features=None if features is None else FeatureSpec.from_json(features))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
