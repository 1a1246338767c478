"""The check `current` of `shards`: whether YAML and raw data still are what the stored shards were made from.

Dagster takes a partitioned asset as a whole for fresh whatever its code version is. So a check says it, as a warning: a
refresh evaluates it, and between runs a sensor, which reads no data and writes only what has changed.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from tfr_assets.components.assets.evaluation import evaluations
from tfr_assets.components.attributes import Look
from tfr_assets.components.runs.dead_runs import DATASET_TAG, unfinished_run
from tfr_assets.components.runs.slices import register
from tfr_assets.errors import SourceError, TfrError
from tfr_assets.layout import manifest_path
from tfr_assets.records.frames.verdicts import CURRENT, Verdict, judge_current
from tfr_assets.sources import on_this_machine
from tfr_assets.urls import named
from tfr_assets.writing.dataset import Dataset

_SECONDS = 30
_SLICES_AT_ONCE = 200  # that are looked at in one tick, which has a minute
_SLICES_NAMED = 5


def current_spec(look: Look) -> dg.AssetCheckSpec:
    """Returns what Dagster knows of the check."""
    return dg.AssetCheckSpec(CURRENT.name, asset=look.key("shards"), description=CURRENT.description, blocking=False)


def evaluate_current(look: Look, instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation:
    """Returns the evaluation of the check; of a slice, it says which."""
    verdict = _judge(look)
    if look.partition:
        verdict = replace(verdict, says=f"{look.partition}: {verdict.says}")
    return _evaluation(verdict, look, instance)


def _evaluation(verdict: Verdict, look: Look, instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation:
    (current,) = evaluations([verdict], look.key("shards"), None, instance)
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
        try:
            look.dataset.catch_up()
        except TfrError as error:  # a run says it where everybody looks
            return dg.SkipReason(named(str(error)))
        if look.slices:
            try:
                return _evaluate_slices(look, context)
            except SourceError as error:  # the folder that slices lie in cannot be listed
                return dg.SkipReason(str(error))
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


def _evaluate_slices(look: Look, context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Looks at the slices that were materialized and have changed since, some at a time, and evaluates the check.

    It is one of all slices: of a check that has partitions, Dagster stores no second evaluation without a run.
    """
    register(look.dataset, look.partition_keys, context.instance)
    found: dict[str, list[str]] = json.loads(context.cursor or "{}")  # by slice: what was seen, what is wrong
    slices = {key: look.of_slice(key) for key in look.dataset.made_slices()}
    now = {key: _seen(each) for key, each in slices.items()}
    changed = [key for key in slices if now[key] != found.get(key, [""])[0]]
    busy = busy_slices([slices[key] for key in changed], context.instance)
    judged = [key for key in changed if key not in busy][:_SLICES_AT_ONCE]
    if not judged and found.keys() <= slices.keys():
        waits = f"; {len(busy)} are being worked on" if busy else ""
        return dg.SkipReason(f"no slice has changed since the last look{waits}")
    for key in judged:
        verdict = _judge(slices[key])
        found[key] = [now[key], "" if verdict.passed else verdict.says]
    found = {key: found[key] for key in slices if key in found}
    context.update_cursor(json.dumps(found))
    evaluation = _evaluation(_judge_slices(found), look, context.instance)
    context.instance.report_runless_asset_event(evaluation)
    return dg.SkipReason(str(evaluation.description))


def busy_slices(looks: Sequence[Look], instance: dg.DagsterInstance) -> set[str | None]:
    """Returns which of some slices runs are working on, or will."""
    by_tag = {each.run_tags[DATASET_TAG]: each.partition for each in looks}
    wanted = dg.RunsFilter(tags={DATASET_TAG: list(by_tag)}, statuses=NOT_FINISHED_STATUSES)
    return {by_tag.get(run.tags[DATASET_TAG]) for run in instance.get_runs(wanted)} if looks else set()


def _judge_slices(found: Mapping[str, Sequence[str]]) -> Verdict:
    wrong = {key: says for key, (_, says) in found.items() if says}
    shown = {"slices": len(found), "outdated": len(wrong)}
    if not wrong:
        return Verdict(CURRENT, True, f"All {len(found)} slices are those of the current settings and raw data", shown)
    named = " ".join(f"{key}: {says}." for key, says in list(wrong.items())[:_SLICES_NAMED])
    return Verdict(CURRENT, False, f"Of {len(found)} slices, {len(wrong)} are outdated. {named}", shown)


def _judge(look: Look) -> Verdict:
    from tfr_assets.writing.outdated import outdated_shards
    from tfr_assets.writing.slices.state import RAW_CHANGED

    planned = len(look.current.shard_keys)
    try:
        if _raw_changed(look.dataset):
            return judge_current(f"{RAW_CHANGED} since it was made. Materialize it again", planned)
        return judge_current(outdated_shards(look.dataset), planned)
    except TfrError as error:
        return judge_current(str(error), planned)


def _raw_changed(dataset: Dataset) -> bool:
    """Whether a slice has raw files that it was not made of. Those behind URLs are not listed so often."""
    from tfr_assets.writing.slices.state import raw_changed, raw_state

    if not dataset.slice or not on_this_machine(dataset.source):
        return False
    return bool(raw_changed(dataset, raw_state(dataset)))


def _seen(look: Look) -> str:
    """Returns what differs after a change of settings, inventory, a slice's raw files, or which files there are."""
    from tfr_assets.writing.slices.state import raw_state

    layout = look.dataset.layout
    places = (layout.inventory, layout.planned, layout.shards, manifest_path(layout.shards / "any").parent)
    marks = [look.raw_version, look.shards_version, *map(_changed, places)]
    if look.dataset.slice and on_this_machine(look.dataset.source):
        with suppress(TfrError):  # the evaluation says it
            marks.append(raw_state(look.dataset))
    return hashlib.sha256(" ".join(marks).encode()).hexdigest()[:16]


def _changed(path: Path) -> str:
    try:
        return str(path.stat().st_mtime_ns)
    except OSError:
        return "none"
