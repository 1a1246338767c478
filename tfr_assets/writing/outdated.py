"""Which files of a dataset are not those that its YAML and its inventory ask for, by their manifests.

No data is read, so it may be asked at any time; damage inside of a file is not noticed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import ShardingPlan, differences, merged_from, plan_shards
from tfr_assets.writing.sizing import as_planned

MISSING = "missing"


def outdated_shards(dataset: Dataset) -> dict[str, str]:
    """Returns the keys of the shards that a run would write, each with the reason.

    Raises:
        StaleError, SchemaError, ConfigError: It is not known which shards there must be; raw must be materialized.
    """
    return _shards(plan_shards(as_planned(dataset)))


def outdated(dataset: Dataset) -> dict[str, str]:
    """Returns the shards, and the splits of merged files, that a run would write, each with the reason.

    Raises:
        StaleError, SchemaError, ConfigError: As `outdated_shards`.
    """
    plan = plan_shards(as_planned(dataset))
    return _shards(plan) or _merged(plan)


def _shards(plan: ShardingPlan) -> dict[str, str]:
    layout = plan.dataset.layout
    return {shard.key: why for shard in plan.shards if (why := _why(layout.shard_path(shard), plan.made_from(shard)))}


def _merged(plan: ShardingPlan) -> dict[str, str]:
    found = {}
    for split in plan.dataset.splits:
        shards = map(plan.dataset.layout.shard_path, plan.of_split(split))
        digests = {path.name: manifest.digest for path in shards if (manifest := Manifest.load(path))}
        if why := _why(plan.dataset.layout.merged_path(split), merged_from(plan, digests)):
            found[split] = why
    return found


def _why(path: Path, wanted: Mapping[str, Any]) -> str:
    """Returns why a file is to be written; nothing if it is not."""
    manifest = Manifest.load(path)
    if manifest is None or not path.is_file() or path.stat().st_size != manifest.bytes:
        return MISSING
    other = differences(manifest.made_from, wanted)
    return other and f"made from another {other}"
