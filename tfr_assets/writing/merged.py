"""Shards → one file, by copying bytes. Trusts nothing: every shard is verified before, the result afterwards."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from tfr_assets.errors import DamagedFile, StaleError
from tfr_assets.records.frames.examine import examine, is_intact
from tfr_assets.records.frames.manifest import Manifest, manifest_problem
from tfr_assets.storage.atomic import refusals
from tfr_assets.units import Advance
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import ShardingPlan, differences, merged_from, plan_shards
from tfr_assets.writing.remote.merge_in_store import merge_where_they_lie
from tfr_assets.writing.stray import MERGED, remove_strays

Inputs = dict[str, tuple[Path, Manifest]]  # by partition key


@dataclass(frozen=True)
class Merged:
    """The result of a merge.

    Attributes:
        manifest: What the file holds.
        path: The file.
        written: Whether it was written now; False where it was there and matched.
        copied_bytes: Bytes copied now.
        seconds: Time it took in all, reading back included; the shards are verified before.
    """

    manifest: Manifest
    path: Path
    written: bool
    copied_bytes: int
    seconds: float


def merge_shards(dataset: Dataset, progress: Advance | None = None) -> dict[str, Merged]:
    """Merges a dataset's shards into one file per split.

    Args:
        dataset: The dataset.
        progress: Called with the number of bytes just copied.

    Returns:
        What was merged, by split.

    Raises:
        StaleError: Shards are missing, or were made from other data or settings than the current ones.
        DamagedFile: Shards, or the merged file, are not what their manifests say.
            Both of these name the shards.
        WriteError: The file system refused. In every case, what lay under the merged file's name is as it was.
    """
    dataset.catch_up()
    with refusals(dataset.layout.folder):
        plan = plan_shards(dataset)
        inputs = _verified_inputs(plan)
        merged = {split: _merge(plan, split, inputs, progress) for split in dataset.splits}
        current = {dataset.layout.merged_path(split).name for split in dataset.splits}
        remove_strays(dataset.layout.merged, re.escape(dataset.name) + MERGED, current)
        return merged


def _merge(plan: ShardingPlan, split: str, inputs: Inputs, progress: Advance | None) -> Merged:
    started = time.perf_counter()
    path = plan.dataset.layout.merged_path(split)
    shards = [inputs[shard.key] for shard in plan.of_split(split)]
    made_from = merged_from(plan, {file.name: manifest.digest for file, manifest in shards})
    old = Manifest.load(path)
    if old and old.made_from == made_from and is_intact(path, old):
        return Merged(old, path, False, 0, time.perf_counter() - started)
    manifest = merge_where_they_lie(shards, path, plan.features, made_from, progress)
    return Merged(manifest, path, True, manifest.bytes, time.perf_counter() - started)


def _verified_inputs(plan: ShardingPlan) -> Inputs:
    """Returns all shards and their manifests, or refuses by name."""
    inputs: Inputs = {}
    missing, stale, damaged = [], [], []
    for shard in plan.shards:
        path = plan.dataset.layout.shard_path(shard)
        manifest = Manifest.load(path)
        if problem := manifest_problem(path) if path.is_file() else None:
            damaged.append(f"{shard.key}: its manifest is invalid: {problem}")
        elif manifest is None or not path.is_file():
            missing.append(f"{shard.key}: missing")
        elif manifest.made_from != plan.made_from(shard):
            stale.append(f"{shard.key}: made from another {differences(manifest.made_from, plan.made_from(shard))}")
        elif not (report := examine(path, manifest)).ok:
            damaged += [f"{shard.key}: {fault}" for fault in report.faults[:3]]
        else:
            inputs[shard.key] = (path, manifest)
    if problems := missing + stale + damaged:
        kind = DamagedFile if damaged else StaleError
        error = kind(
            f"cannot merge dataset {plan.dataset.title!r}; materialize these shards again:\n{_lines(problems)}"
        )
        error.shards = tuple(shard.key for shard in plan.shards if shard.key not in inputs)
        raise error
    return inputs


def _lines(lines: list[str], most: int = 20) -> str:
    more = [f"… and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join(f"  {line}" for line in lines[:most] + more)
