"""Writes one TFRecord file with its index and manifest, whole or not at all."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.compression import Compressor
from tfr_assets.records.digest import digest_frames, to_text
from tfr_assets.records.example import Frames
from tfr_assets.records.features import FeatureSpec
from tfr_assets.records.files import atomic_file, write_all
from tfr_assets.records.index import FRAMING, index_lines
from tfr_assets.records.manifest import Manifest


@dataclass
class _Totals:
    records: int = 0
    stream_bytes: int = 0
    digest: int = 0


def write_file(
    path: Path,
    frames: Iterable[Frames],
    compression: str = "none",
    features: FeatureSpec | None = None,
    made_from: dict[str, Any] | None = None,
) -> Manifest:
    """Writes frames to `path`, then the index and the manifest beside it.

    The old manifest goes before the old file is replaced, and the new one comes last: whenever this is interrupted, no
    manifest vouches for a file that it does not describe.

    Args:
        path: Final name.
        frames: The file's content, in order; each is written before the next is asked for.
        compression: `none`, `gzip` or `zlib`.
        features: How the records are parsed, for the manifest.
        made_from: What decides over the content, for the manifest.

    Returns:
        The manifest.

    Raises:
        WriteError: The file system refused; what was there before is untouched.
    """
    totals = _Totals()
    compressor = Compressor(compression)
    with atomic_file(index_path(path)) as index, atomic_file(path) as data:
        for some in frames:
            totals.digest = digest_frames(totals.digest, some.data, some.sizes)
            write_all(index, index_lines(some.sizes, totals.stream_bytes))
            totals.records += len(some.sizes)
            totals.stream_bytes += len(some.data)
            write_all(data, compressor.feed(some.data))
        write_all(data, compressor.finish())
        size = os.fstat(data).st_size
        os.fsync(data)  # a disk that refuses shall do so while the old manifest is still there
        manifest_path(path).unlink(missing_ok=True)
    manifest = Manifest(
        file=path.name,
        records=totals.records,
        bytes=size,
        payload_bytes=totals.stream_bytes - FRAMING * totals.records,
        compression=compression,
        digest=to_text(totals.digest),
        features=features,
        made_from=made_from or {},
    )
    manifest.save(path)
    return manifest
