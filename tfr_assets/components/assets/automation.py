"""What refreshes a dataset by itself: a schedule, a watch on its raw files, and assets that follow each other."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import takewhile
from typing import Any

import dagster as dg
from dagster._core.storage.tags import SCHEDULE_NAME_TAG

from tfr_assets.components.assets.current import busy_slices
from tfr_assets.components.assets.jobs import all_partitions, job_tags, refresh_job, verify_job
from tfr_assets.components.attributes import Look
from tfr_assets.components.runs.dead_runs import unfinished_run
from tfr_assets.errors import TfrError
from tfr_assets.layout import feature_spec_path
from tfr_assets.sources import called, files_state
from tfr_assets.urls import named
from tfr_assets.writing.outdated import outdated

_MOST_RUNS = 50  # that are asked for in one tick
_MOST_EARLIER = 24  # slices before the last one that a schedule looks at
_LAST_RUNS = 20  # among which the last refresh is looked for

# `AutomationCondition.eager()` takes every materialization for a change, also of the same content
_CHANGED = dg.AutomationCondition.data_version_changed() | dg.AutomationCondition.newly_missing()
ON_CHANGE: dg.AutomationCondition[Any] = (
    dg.AutomationCondition.any_deps_match(_CHANGED).since_last_handled()
    & ~dg.AutomationCondition.any_deps_missing()
    & ~dg.AutomationCondition.any_deps_in_progress()
    & ~dg.AutomationCondition.in_progress()
)


_STATE = "tfr/raw_state"  # tag of a run: what raw files and settings were when it was asked for


def build_schedule(whole: Look, cron: str, deps: Sequence[dg.AssetKey] = ()) -> dg.ScheduleDefinition:
    """Returns the schedule that refreshes a dataset whose raw data is made by the assets `deps`, if by any.

    Where raw data comes in slices of time, it refreshes the last that is over, and makes those before it that were not
    made since the newest that was; of slices with names, all.
    """
    name = whole.dataset.name
    # only a run shows what a function or another asset gives now, and only a run keeps the merged file from being late
    always = bool(deps) or whole.freshness is not None or bool(called(whole.dataset.source))

    @dg.schedule(
        name=f"{name}_schedule",
        job_name=refresh_job(name),
        cron_schedule=cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,  # whoever writes a schedule wants it to run
        description=f"Refreshes {f'slices of {name}' if whole.slices else name}: {cron}, in UTC."
        + ("" if always else " Launches no run where raw files and settings are those of the last one."),
    )
    def refresh(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        with suppress(TfrError):  # the run will say it where everybody looks
            whole.dataset.catch_up()
        if whole.dataset.slices is None:
            if run := unfinished_run(context.instance, {SCHEDULE_NAME_TAG: f"{name}_schedule"}):
                return dg.SkipReason(f"run {run.run_id[:8]}, which the tick before launched, is not over yet")
            looks = [whole]
        else:
            keys = _due_slices(whole, context.scheduled_execution_time)
            if not keys:
                return dg.SkipReason("the first slice is not over yet")
            all_looks = [whole.of_slice(key) for key in keys]
            busy = busy_slices(all_looks, context.instance)
            looks = [look for look in all_looks if look.partition not in busy]
            if not looks:
                return dg.SkipReason(f"runs are working on {', '.join(keys[:_LAST_RUNS])}")
        requests = [request for look in looks if (request := _request_if_new(look, always, context.instance))]
        if not requests:
            return dg.SkipReason("nothing new: raw files and settings are those that all files were made from")
        if len(requests) > 1:  # then Dagster wants keys, of which it launches none twice
            at = context.scheduled_execution_time.isoformat()
            return [request._replace(run_key=f"{request.partition_key} {at}") for request in requests]
        return requests

    return refresh


def _due_slices(whole: Look, now: datetime) -> list[str]:
    """Returns the slices that a schedule looks at, in order."""
    slices = whole.dataset.slices
    assert slices
    keys = slices.all_keys(now)
    if slices.values is not None:
        return keys
    if not whole.dataset.made_slices():  # whoever wants all that was before the first tick launches a backfill
        return keys[-1:]
    left_out = takewhile(
        lambda key: not feature_spec_path(whole.dataset.layout_of(key).shards).exists(),
        reversed(keys[-1 - _MOST_EARLIER :]),
    )
    return [*reversed([*left_out])] or keys[-1:]


def _request_if_new(look: Look, always: bool, instance: dg.DagsterInstance) -> dg.RunRequest | None:
    try:
        state = "" if always else _with_settings(look, files_state(look.dataset.source))
    except (TfrError, OSError):  # the run will say it where everybody looks
        state = ""
    if state and state == _last_state(look, instance) and not _outdated(look):
        return None
    return _request(look, state)


def build_watch(look: Look, seconds: int) -> dg.SensorDefinition:
    """Returns the sensor that refreshes a dataset when its raw files have changed. It reads none of them."""
    dataset = look.dataset

    @dg.sensor(
        name=f"{dataset.name}_raw_changed",
        job_name=refresh_job(dataset.name),
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Looks at names, sizes and times of the raw files every {seconds} s; refreshes after a change.",
    )
    def raw_changed(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        try:
            state = files_state(dataset.source)
        except (TfrError, OSError) as error:
            yield dg.SkipReason(str(error))
            return
        if state == context.cursor:
            yield dg.SkipReason("no raw file was added, removed or written to")
            return
        context.update_cursor(state)
        # without a key: files that are again what they were once are a change, too, and the cursor prevents repeats
        yield _request(look, _with_settings(look, state))

    return raw_changed


def build_slice_watch(whole: Look, seconds: int) -> dg.SensorDefinition:
    """Returns the sensor that makes new slices, and those whose raw files have changed. It reads none of them.

    Files that have changed since the tick before may still be growing: they are left alone until the next one.
    """
    name = whole.dataset.name

    @dg.sensor(
        name=f"{name}_raw_changed",
        job_name=refresh_job(name),
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Looks at names, sizes and times of the raw files of all slices every {seconds} s; makes those "
        "that are new or have changed, once they stay as they are.",
    )
    def raw_changed(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        from tfr_assets.writing.slices import raw_state, why_new

        assert whole.dataset.slices
        try:
            whole.dataset.catch_up()
        except TfrError as error:
            yield dg.SkipReason(named(str(error)))
            return
        before: dict[str, list[str]] = json.loads(context.cursor or "{}")  # by slice: state, state that was launched
        after: dict[str, list[str]] = {}
        looks = {key: whole.of_slice(key) for key in whole.dataset.slices.all_keys()}
        busy = busy_slices(list(looks.values()), context.instance)
        requests = 0
        for key, look in looks.items():
            last, launched = before.get(key, ["", ""])
            try:
                state = raw_state(look.dataset)
            except (TfrError, OSError):  # a run would say it
                state = last
            if not state and key not in before:  # where all files are gone, a run says so
                continue
            if state == last != launched and key not in busy and requests < _MOST_RUNS:
                if why_new(look.dataset, state):
                    requests += 1
                    yield _request(look, _with_settings(look, state))
                launched = state
            after[key] = [state, launched]
        context.update_cursor(json.dumps(after))
        if not requests:
            yield dg.SkipReason("no slice has new raw files that stay as they are")

    return raw_changed


def _request(look: Look, state: str) -> dg.RunRequest:
    tags = {_STATE: state} if state else {}
    if look.partition:
        return dg.RunRequest(run_key=None, partition_key=look.partition, tags=tags | look.run_tags)
    return dg.RunRequest(run_key=None, tags=all_partitions(look.partition_keys) | tags)


def _with_settings(look: Look, state: str) -> str:
    """Returns what changes when the state of the raw files or a setting does."""
    return f"{state}-{look.raw_version}-{look.shards_version}"


def _last_state(look: Look, instance: dg.DagsterInstance) -> str:
    """Returns the state for which the stored files were made and found to be whole; nothing where that is not known.

    That is what the last refresh was asked for, unless it failed, or damage was found since. One that was launched by
    hand, or re-executed with the tags of another, says nothing of it.
    """
    for run in instance.get_runs(dg.RunsFilter(tags=look.run_tags), limit=_LAST_RUNS):
        if run.job_name == verify_job(look.dataset.name) and run.is_success:
            continue
        if run.job_name in (refresh_job(look.dataset.name), verify_job(look.dataset.name)):
            return run.tags.get(_STATE, "") if run.is_success and not run.parent_run_id else ""
    return ""


def _outdated(look: Look) -> bool:
    try:
        return bool(outdated(look.dataset))
    except TfrError:
        return True


def build_follower(look: Look) -> dg.AutomationConditionSensorDefinition:
    """Returns the sensor that launches what the automation conditions of a dataset's assets ask for."""
    name = look.dataset.name
    return dg.AutomationConditionSensorDefinition(
        name=f"{name}_follows_raw",
        target=look.select(*look.made),
        default_status=dg.DefaultSensorStatus.RUNNING,
        run_tags=job_tags(look.dataset),
        description="Materializes shards and merged when what they are made from has changed.",
    )
