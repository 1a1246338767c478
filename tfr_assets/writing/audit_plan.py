"""A dataset's files, compared with the plan that its YAML and its inventory make.

This notices files that are gone with all that described them, and files of another plan. Reads manifests only.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfr_assets.errors import TfrError
from tfr_assets.layout import Layout, manifest_path
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.scan import Fault, FaultKind
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import ShardingPlan, differences, merged_from, plan_shards
from tfr_assets.writing.sizing import as_planned, load_planned
from tfr_assets.writing.stray import SHARD, names_in


def audit_plan(dataset: Dataset) -> tuple[Fault, ...]:
    """Returns what is missing from a dataset, and which of its files are not those of its plan.

    A file that its manifest knows is not reported as missing here: examining it finds that.
    """
    return tuple(_faults(dataset))


def _faults(dataset: Dataset) -> Iterator[Fault]:
    layout = dataset.layout
    remedy = f"`{dataset.command}` writes it"
    if not layout.inventory.exists() and not names_in(layout.shards) and not names_in(layout.merged):
        yield _fault(layout.folder, FaultKind.UNWRITTEN, remedy)
        return
    if dataset.auto and load_planned(layout, dataset.splits) is None and layout.inventory.exists():
        if not layout.planned.exists():  # else it is damaged, which is found with what lies beside the files
            yield _fault(layout.planned, FaultKind.MISSING, remedy)
        return
    try:
        plan = plan_shards(as_planned(dataset))
    except TfrError as error:  # then it is unknown what there must be
        yield _fault(layout.inventory, FaultKind.BESIDE, str(error))
        return
    yield from _shard_faults(plan, layout, remedy)
    yield from _merged_faults(plan, layout, remedy)


def _shard_faults(plan: ShardingPlan, layout: Layout, remedy: str) -> Iterator[Fault]:
    for shard in plan.shards:
        path = layout.shard_path(shard)
        if manifest := Manifest.load(path):
            if other := differences(manifest.made_from, plan.made_from(shard)):
                yield _stale(path, f"made from another {other}", remedy)
            elif manifest.records != shard.rows:
                says = f"its manifest says that it holds {manifest.records} records, but {shard.rows} rows are planned"
                yield _stale(path, says, remedy)
        elif not path.exists() and not manifest_path(path).exists():
            yield _fault(path, FaultKind.MISSING, f"with its manifest; {remedy}")
    planned = {layout.shard_path(shard).name for shard in plan.shards}
    counts = plan.dataset.shard_counts
    for name in sorted(names_in(layout.shards) - planned):
        if re.fullmatch(re.escape(layout.name) + SHARD, name):
            split = name.removeprefix(f"{layout.name}-").partition(".")[0]
            files = f"{counts.get(split, 0)} files of split {split!r}"
            yield _fault(layout.shards / name, FaultKind.STALE, f"the plan has {files}; the next run removes it")


def _merged_faults(plan: ShardingPlan, layout: Layout, remedy: str) -> Iterator[Fault]:
    for split in plan.dataset.splits:
        path = layout.merged_path(split)
        manifests = {path.name: Manifest.load(path) for path in map(layout.shard_path, plan.of_split(split))}
        merged = Manifest.load(path)
        if not merged or not all(manifests.values()):
            continue
        wanted: dict[str, Any] = merged_from(plan, {name: m.digest for name, m in manifests.items() if m})
        if other := differences(merged.made_from, wanted):
            yield _stale(path, f"made from another {other}", remedy)


def _stale(path: Path, says: str, remedy: str) -> Fault:
    return _fault(path, FaultKind.STALE, f"{says}; {remedy} again")


def _fault(path: Path, kind: FaultKind, says: str) -> Fault:
    return Fault(str(path), 0, 0, kind, says)
