"""Files that are read as one: each is what its manifest says, and all were made alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfr_assets.errors import DamagedFile, StaleError
from tfr_assets.layout import manifest_path
from tfr_assets.records.features import FeatureSpec
from tfr_assets.records.manifest import Manifest

_MOST_LINES = 20


@dataclass(frozen=True)
class RecordFiles:
    """Whole files that belong together and are parsed alike.

    Attributes:
        paths: The files, in order.
        compression: `none`, `gzip` or `zlib`.
        features: How their records are parsed.
        records: Number of records in all of them.
        bytes: Size of all of them.
        counts: Number of records of each.
        sizes: Bytes of each.
    """

    paths: tuple[str, ...]
    compression: str
    features: FeatureSpec
    records: int
    bytes: int
    counts: tuple[int, ...]
    sizes: tuple[int, ...]


def gather(paths: Sequence[Path], sizes_must_fit: bool = True) -> RecordFiles:
    """Holds files against their manifests and against each other. Opens the manifests only.

    Args:
        paths: At least one file, in the order to read them in.
        sizes_must_fit: Whether to refuse files of another size than written.

    Raises:
        StaleError: A file has no manifest, or was made from other data or settings than the first.
        DamagedFile: A file is missing, differs from its manifest in size, or holds no tf.Examples.
    """
    found = [(path, _manifest(path)) for path in paths]
    first = found[0][1]
    if wrong := [line for path, manifest in found if (line := _wrong_size(path, manifest, sizes_must_fit))]:
        folders = " ".join(sorted({str(path.parent) for path in paths}))
        raise DamagedFile(f"files are not what was written; `tfr verify {folders}` tells more:\n{lines(wrong)}")
    if odd := [line for path, manifest in found if (line := _other_make(path, manifest, first))]:
        raise StaleError(
            f"files are of several versions; run `tfr run {dataset_of(paths[0])}` to write the outdated ones anew. "
            f"Compared with {paths[0]}:\n{lines(odd)}"
        )
    if first.features is None:
        raise DamagedFile(f"{paths[0]} holds other records than tf.Examples; read them with tf.data.TFRecordDataset")
    return RecordFiles(
        paths=tuple(map(str, paths)),
        compression=first.compression,
        features=first.features,
        records=sum(manifest.records for _, manifest in found),
        bytes=sum(manifest.bytes for _, manifest in found),
        counts=tuple(manifest.records for _, manifest in found),
        sizes=tuple(manifest.bytes for _, manifest in found),
    )


def dataset_of(path: Path) -> str:
    """Returns the dataset that a file is named after."""
    return path.name.partition("-")[0]


def lines(texts: Iterable[str]) -> str:
    """Returns the first texts, one an indented line, for an error's message."""
    all_lines = list(texts)
    more = [f"… and {len(all_lines) - _MOST_LINES} more"] if len(all_lines) > _MOST_LINES else []
    return "\n".join(f"  {line}" for line in all_lines[:_MOST_LINES] + more)


def _manifest(path: Path) -> Manifest:
    manifest = Manifest.load(path)
    if manifest is None:
        raise StaleError(
            f"{path}: there is no readable manifest {manifest_path(path)}, so that nothing says what it must hold. "
            "Write the file with `tfr run`, or, if it is of other origin, read it with tf.data.TFRecordDataset"
        )
    return manifest


def _wrong_size(path: Path, manifest: Manifest, must_fit: bool) -> str | None:
    if not path.is_file():
        return f"{path.name}: missing"
    if not must_fit:
        return None
    size = path.stat().st_size
    return None if size == manifest.bytes else f"{path.name}: {size} bytes, its manifest says {manifest.bytes}"


def _other_make(path: Path, manifest: Manifest, first: Manifest) -> str | None:
    """Tells what sets a file apart from the first, if anything; only their rows may differ."""
    found, expected = _make(manifest), _make(first)
    names = [name for name in sorted(expected | found) if found.get(name) != expected.get(name)]
    return f"{path.name}: another {' and '.join(names)}" if names else None


def _make(manifest: Manifest) -> dict[str, Any]:
    return {**manifest.made_from, "rows": None, "compression": manifest.compression, "features": manifest.features}
