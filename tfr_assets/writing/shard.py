"""Writes one shard of a plan, unless it is there already."""

import re
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfr_assets.errors import StaleError
from tfr_assets.layout import Shard, feature_spec_path, index_path, manifest_path
from tfr_assets.records.examples.encoder import ExampleEncoder, Frames
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.examine import is_intact
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.sources import Inventory, read_rows
from tfr_assets.storage.atomic import refusals, write_atomically
from tfr_assets.storage.mirror import catch_up_files
from tfr_assets.storage.sealed import seal, unseal
from tfr_assets.units import Advance
from tfr_assets.writing.export.tfds import withdraw_tfds_files, write_tfds_files
from tfr_assets.writing.export.tfds_features import image_facts
from tfr_assets.writing.plan import ShardingPlan, load_inventory
from tfr_assets.writing.stray import SHARD, read_manifest, remove_damaged, remove_strays


@dataclass(frozen=True)
class ShardWritten:
    """The result of one shard.

    Attributes:
        manifest: What the file holds.
        path: The file.
        written: Whether it was written now; False where it was there and matched.
        seconds: Time it took.
        peak_memory_bytes: The most memory that the process has had so far.
    """

    manifest: Manifest
    path: Path
    written: bool
    seconds: float
    peak_memory_bytes: int


def write_shard(plan: ShardingPlan, shard: Shard, progress: Advance | None = None) -> ShardWritten:
    """Writes a shard, or leaves it when its manifest matches the plan and its bytes match the manifest.

    Args:
        plan: The plan.
        shard: One of the plan's shards.
        progress: Called with the number of records just written.

    Raises:
        StaleError: The inventory is another one than the plan's by now.
        SourceChanged: Raw data is not what the inventory says.
        SchemaError: A value that a tf.Example cannot hold.
        WriteError: The file system refused. In every case, what lay under the shard's name is as it was.
    """
    started = time.perf_counter()
    path = plan.dataset.layout.shard_path(shard)
    made_from = plan.made_from(shard)
    with refusals(path):
        catch_up_files(path, manifest_path(path), index_path(path), plan.dataset.layout.inventory)
        manifest = Manifest.load(path)
        if manifest and manifest.made_from == made_from and is_intact(path, manifest):
            return _done(manifest, path, False, started)
        inventory = load_inventory(plan.dataset)
        if inventory.fingerprint != plan.inventory_fingerprint:
            raise StaleError(
                f"raw of dataset {plan.dataset.title!r} was materialized again while shard {shard.key} waited; "
                "run again"
            )
        frames = _withdrawing(path.parent, _encode(plan, shard, inventory, progress))
        manifest = write_file(path, frames, plan.dataset.compression, plan.features, made_from)
        return _done(manifest, path, True, started)


def _withdrawing(folder: Path, frames: Iterator[Frames]) -> Iterator[Frames]:
    """Yields all frames; then what describes the old shards goes, before one of them is replaced."""
    yield from frames
    withdraw_tfds_files(folder)


def _done(manifest: Manifest, path: Path, written: bool, started: float) -> ShardWritten:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    scale = 1 if sys.platform == "darwin" else 1024  # Linux counts kB, macOS bytes
    return ShardWritten(manifest, path, written, time.perf_counter() - started, peak * scale)


def _encode(plan: ShardingPlan, shard: Shard, inventory: Inventory, progress: Advance | None) -> Iterator[Frames]:
    encoder = ExampleEncoder(plan.features, plan.dataset.features.cast)
    names = plan.features.columns_of(inventory.schema.names)
    row = shard.start
    for batch in read_rows(inventory, shard.start, shard.stop, columns=names):
        yield from encoder.encode(batch, row)
        row += batch.num_rows
        if progress:
            progress(batch.num_rows)


def still_there(written: ShardWritten) -> bool:
    """Whether a shard lies on the disk as it was left: the same manifest, a file of its size. Reads no record."""
    path = written.path
    return path.is_file() and path.stat().st_size == written.manifest.bytes and Manifest.load(path) == written.manifest


def finish_shards(plan: ShardingPlan) -> str | None:
    """Once all shards of a plan are there, saves what describes them beside them and removes those of another number.

    Damaged measurements go, too: only measuring writes them, and readers do as if there were none.

    Args:
        plan: The plan, whose dataset has caught up with what lies in a store. While a shard is missing, or still of
            other data or settings, nothing is done.

    Returns:
        Why TensorFlow Datasets cannot load the shards, if so.

    Raises:
        StaleError: Another run, which plans another number of shards, removed some of these meanwhile.
        WriteError: The file system refused.
    """
    layout = plan.dataset.layout
    with refusals(layout.shards):
        paths = [layout.shard_path(shard) for shard in plan.shards]
        manifests = [read_manifest(path) for path in paths]
        found = [m for m, s in zip(manifests, plan.shards, strict=True) if m and m.made_from == plan.made_from(s)]
        if len(found) < len(manifests) or not all(path.is_file() for path in paths):
            return None
        save_feature_spec(layout.shards, plan.features, [path.name for path in paths])
        remove_strays(layout.shards, re.escape(layout.name) + SHARD, {path.name for path in paths})
        for path in layout.measurements():
            remove_damaged(path)
        by_split = {
            split: [manifest for manifest, shard in zip(found, plan.shards, strict=True) if shard.split == split]
            for split in plan.dataset.splits
        }
        images = image_facts(load_inventory(plan.dataset))
        obstacle = write_tfds_files(layout.shards, layout.name, plan.features, by_split, images=images)
        if gone := [path.name for path in paths if not path.is_file()]:
            raise StaleError(
                f"another run of dataset {plan.dataset.title!r}, which plans another number of shards, removed "
                f"{gone[0]} while this one came to its end. Run one after the other; the last one's number counts"
            )
        return obstacle


def save_feature_spec(folder: Path, features: FeatureSpec, names: Sequence[str]) -> None:
    """Saves beside shards how a record of any of them is parsed, and which files there must be.

    Args:
        folder: Where they lie.
        features: How a record is parsed.
        names: Names of all of them.
    """
    write_atomically(feature_spec_path(folder), feature_spec(features, names))


def feature_spec(features: FeatureSpec, names: Sequence[str]) -> bytes:
    """Returns what `save_feature_spec` saves."""
    return seal({"features": features.to_json(), "files": list(names)})


def load_feature_spec(folder: Path) -> tuple[FeatureSpec, tuple[str, ...]] | None:
    """Returns what `save_feature_spec` saved: features and names. None where it is missing or damaged."""
    try:
        values = unseal(feature_spec_path(folder).read_bytes()) or {}
        features, names = FeatureSpec.from_json(values["features"]), tuple(values["files"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    return (features, names) if all(isinstance(name, str) for name in names) else None


def describes(folder: Path, features: FeatureSpec) -> bool:
    """Whether what is saved beside shards says that records are parsed in this way."""
    saved = load_feature_spec(folder)
    return saved is not None and saved[0] == features
