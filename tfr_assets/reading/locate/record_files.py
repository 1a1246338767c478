"""Files that are read as one: each is what its manifest says, and all were made alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tfr_assets.errors import ConfigError, DamagedFile, StaleError
from tfr_assets.layout import manifest_path
from tfr_assets.reading.locate.file_sets import command_for
from tfr_assets.records.examples.survey import Identity
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.features import Feature, FeatureSpec
from tfr_assets.storage.file_names import is_remote
from tfr_assets.units import MAX_RECORD_BYTES
from tfr_assets.urls import place_of

_MOST_LINES = 20


@dataclass(frozen=True)
class Scanned:
    """What is known of a file without manifest.

    Attributes:
        identity: Which file it was when it was read; empty: that cannot be told, as of some web servers' files.
        bounds: int64 of shape (records + 1,): where each frame starts, and where the last one ends.
    """

    identity: Identity
    bounds: np.ndarray


@dataclass(frozen=True)
class RecordFiles:
    """Whole files that belong together and are parsed alike, as their manifests described them when they were opened.

    Attributes:
        paths: The files, in order.
        manifests: What each must hold. No manifest is loaded again later, so that a reader gets what was opened,
            or an error, whatever happens to the files.
        features: How their records are parsed.
        max_record_bytes: Length beyond which a record is damage.
        scanned: By path, of files without manifest: what each was when it was read to find its records.
    """

    paths: tuple[str, ...]
    manifests: tuple[Manifest, ...]
    features: FeatureSpec
    max_record_bytes: int = MAX_RECORD_BYTES
    scanned: Mapping[str, Scanned] = field(default_factory=dict, compare=False, repr=False)

    def with_limit(self, max_record_bytes: int | None) -> "RecordFiles":
        """Returns the same files with another limit of records' lengths; None: this one.

        Raises:
            ConfigError: It is not a positive number.
        """
        if max_record_bytes is None:
            return self
        if not isinstance(max_record_bytes, int) or isinstance(max_record_bytes, bool) or max_record_bytes < 1:
            raise ConfigError(f"max_record_bytes={max_record_bytes!r} must be a positive number of bytes")
        return replace(self, max_record_bytes=max_record_bytes)

    def absolute(self) -> "RecordFiles":
        """Returns the same files by paths that stay theirs in another working directory."""
        paths = tuple(path if is_remote(path) else str(Path(path).absolute()) for path in self.paths)
        return replace(self, paths=paths)

    @property
    def compression(self) -> str:
        """`none`, `gzip` or `zlib`."""
        return self.manifests[0].compression

    @property
    def records(self) -> int:
        """Number of records in all of them."""
        return sum(manifest.records for manifest in self.manifests)

    @property
    def bytes(self) -> int:
        """Size of all of them."""
        return sum(manifest.bytes for manifest in self.manifests)


def gather(paths: Sequence[Path], sizes_must_fit: bool = True) -> RecordFiles:
    """Checks files against their manifests and against each other. Opens the manifests only.

    Args:
        paths: At least one file, in the order to read them in.
        sizes_must_fit: Whether to refuse files of another size than written.

    Raises:
        StaleError: A file has no manifest, or was made from other data or settings than the first.
        DamagedFile: A file is missing, or differs from its manifest in size.
        ConfigError: Its records were written serialized, so that nothing is known of their features.
    """
    sizes = [path.stat().st_size if path.is_file() else None for path in paths]
    found = [Found(place_of(path), _manifest(path), size) for path, size in zip(paths, sizes, strict=True)]
    if missing := [f"{path.name}: missing" for path, size in zip(paths, sizes, strict=True) if size is None]:
        raise DamagedFile(_not_as_written(found, missing))
    return check_together(found, sizes_must_fit)


@dataclass(frozen=True)
class Found:
    """A file, wherever it is.

    Attributes:
        path: The file, or its URL.
        manifest: What it must hold.
        size: Bytes that it has; None where that cannot be known.
    """

    path: str
    manifest: Manifest
    size: int | None

    @property
    def name(self) -> str:
        """Its name without folder."""
        return self.path.rpartition("/")[2]


def check_together(found: Sequence[Found], sizes_must_fit: bool = True) -> RecordFiles:
    """Checks files that are there against their manifests and against each other. Raises as `gather`."""
    first = found[0].manifest
    if sizes_must_fit and (wrong := [line for each in found if (line := _wrong_size(each))]):
        raise DamagedFile(_not_as_written(found, wrong))
    if odd := [line for each in found if (line := _other_make(each, first))]:
        raise StaleError(
            f"files are of several versions; {command_for(found[0].path)} writes the outdated ones again. "
            f"Compared with {found[0].path}:\n{lines(odd)}"
        )
    if first.features is None:
        raise ConfigError(
            f"{found[0].path} was written from records that were serialized already, and of whose features nothing is "
            "known; read them with tf.data.TFRecordDataset and tf.io.parse_example, or write rows in their place"
        )
    return RecordFiles(
        paths=tuple(each.path for each in found),
        manifests=tuple(each.manifest for each in found),
        features=first.features,
        max_record_bytes=max(each.manifest.max_record_bytes for each in found),
    )


def _not_as_written(found: Sequence[Found], wrong: Sequence[str]) -> str:
    folders = " ".join(sorted({each.path.rpartition("/")[0] for each in found}))
    remedy = "get them again" if is_remote(folders) else f"`tfr verify {folders}` tells more"
    return f"files are not what was written; {remedy}:\n{lines(wrong)}"


def lines(texts: Iterable[str]) -> str:
    """Returns the first texts, one an indented line, for an error's message."""
    all_lines = list(texts)
    more = [f"… and {len(all_lines) - _MOST_LINES} more"] if len(all_lines) > _MOST_LINES else []
    return "\n".join(f"  {line}" for line in all_lines[:_MOST_LINES] + more)


def _manifest(path: Path) -> Manifest:
    manifest = Manifest.load(path)
    if manifest is None:
        is_there = manifest_path(path).exists()
        foreign = "read it with tf.data.TFRecordDataset" if is_there else f"run `tfr adopt {path}`"
        raise StaleError(
            f"{path}: there is no readable manifest {manifest_path(path)}, so that nothing says what it must hold. "
            f"Write the file with `tfr run`, or, if it is of other origin, {foreign}"
        )
    return manifest


def _wrong_size(found: Found) -> str | None:
    expected = found.manifest.bytes
    return None if found.size in (None, expected) else f"{found.name}: {found.size} bytes, its manifest says {expected}"


def _other_make(found: Found, first: Manifest) -> str | None:
    """Returns how a file differs from the first, if it does; only their rows may differ."""
    make, expected = _make(found.manifest), _make(first)
    names = [name for name in sorted(expected | make) if make.get(name) != expected.get(name)]
    if not names:
        return None
    other = f"{found.name}: another {' and '.join(names)}"
    return other + _other_feature(found.manifest, first)


def _other_feature(manifest: Manifest, first: Manifest) -> str:
    """Returns what the first feature is in two files that is not the same; nothing, if all are."""
    found, expected = (
        {feature.name: feature for feature in each.features.features} if each.features else {}
        for each in (manifest, first)
    )
    name = min((name for name in found | expected if found.get(name) != expected.get(name)), default=None)
    if name is None:
        return ""
    return f": {name!r} is {_said(found.get(name))}, there {_said(expected.get(name))}"


def _said(feature: Feature | None) -> str:
    if feature is None:
        return "absent"
    return f"{feature.arrow_type} of shape {feature.shape}{', absent in some records' if feature.optional else ''}"


def _make(manifest: Manifest) -> dict[str, Any]:
    return {**manifest.made_from, "rows": None, "compression": manifest.compression, "features": manifest.features}
