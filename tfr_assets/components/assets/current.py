"""The check `current` of `shards`: whether YAML and raw data still are what the stored shards were made from.

Dagster takes a partitioned asset as a whole for fresh whatever its code version is. So a check says it, as a warning: a
refresh evaluates it, and between runs a sensor, which reads no data and writes only what has changed.
"""

import hashlib
from pathlib import Path

import dagster as dg

from tfr_assets.components.assets.evaluation import evaluations
from tfr_assets.components.attributes import Look
from tfr_assets.components.runs.dead_runs import DATASET_TAG, unfinished_run
from tfr_assets.errors import TfrError
from tfr_assets.layout import manifest_path
from tfr_assets.records.frames.verdicts import CURRENT, Verdict, judge_current

_SECONDS = 30


def current_spec(look: Look) -> dg.AssetCheckSpec:
    """Returns what Dagster knows of the check."""
    return dg.AssetCheckSpec(CURRENT.name, asset=look.key("shards"), description=CURRENT.description, blocking=False)


def evaluate_current(look: Look, instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation:
    """Returns the evaluation of the check."""
    (current,) = evaluations([_judge(look)], look.key("shards"), None, instance)
    return current


def report_current(look: Look, instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation:
    """Evaluates the check, and records that without a run."""
    found = evaluate_current(look, instance)
    instance.report_runless_asset_event(found)
    return found


def build_current_sensor(look: Look) -> dg.SensorDefinition:
    """Returns the sensor that evaluates the check after each change of YAML or files. It launches nothing."""
    name = look.dataset.name

    @dg.sensor(
        name=f"{name}_current",
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description='Evaluates the check "current" of shards after a change of the YAML, the inventory or the files. '
        "Reads no data and launches nothing.",
        target=look.select("shards"),
    )
    def current(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        if not look.dataset.layout.inventory.exists():
            return dg.SkipReason("nothing was materialized yet")
        seen = _seen(look)
        if seen == context.cursor:
            return dg.SkipReason("neither settings nor files have changed since the last look")
        if run := unfinished_run(context.instance, {DATASET_TAG: name}):
            return dg.SkipReason(f"run {run.run_id[:8]} is working on {name}")
        found = report_current(look, context.instance)
        context.update_cursor(seen)
        return dg.SkipReason(str(found.description))

    return current


def _judge(look: Look) -> Verdict:
    from tfr_assets.writing.outdated import outdated_shards

    planned = len(look.current.shard_keys)
    try:
        return judge_current(outdated_shards(look.dataset), planned)
    except TfrError as error:
        return judge_current(str(error), planned)


def _seen(look: Look) -> str:
    """Returns what differs after a change of settings, inventory, or which files there are."""
    layout = look.dataset.layout
    places = (layout.inventory, layout.planned, layout.shards, manifest_path(layout.shards / "any").parent)
    marks = [look.raw_version, look.shards_version, *map(_changed, places)]
    return hashlib.sha256(" ".join(marks).encode()).hexdigest()[:16]


def _changed(path: Path) -> str:
    try:
        return str(path.stat().st_mtime_ns)
    except OSError:
        return "none"
