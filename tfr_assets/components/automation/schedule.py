"""A schedule, which refreshes a dataset where something is new."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from itertools import takewhile

import dagster as dg
from dagster._core.storage.tags import SCHEDULE_NAME_TAG

from tfr_assets.components.assets.current import busy_slices
from tfr_assets.components.assets.jobs import refresh_job
from tfr_assets.components.attributes import Look
from tfr_assets.components.automation.requests import last_state, request, with_settings
from tfr_assets.components.runs.dead_runs import unfinished_run
from tfr_assets.components.runs.slices import register
from tfr_assets.errors import TfrError
from tfr_assets.layout import feature_spec_path
from tfr_assets.sources import called, files_state
from tfr_assets.writing.outdated import outdated

_MOST_EARLIER = 24  # slices before the last one that a schedule looks at
_SHOWN = 20


def build_schedule(whole: Look, cron: str, deps: Sequence[dg.AssetKey] = ()) -> dg.ScheduleDefinition:
    """Returns the schedule that refreshes a dataset whose raw data is made by the assets `deps`, if by any.

    Where raw data comes in slices of time, it refreshes the last that is over, and makes those before it that were not
    made since the newest that was; of all others, those that are new or have changed.
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
        from tfr_assets.writing.slices.state import why_stale

        with suppress(TfrError):  # the run will say it where everybody looks
            whole.dataset.catch_up()
        if whole.dataset.slices is None:
            if run := unfinished_run(context.instance, {SCHEDULE_NAME_TAG: f"{name}_schedule"}):
                return dg.SkipReason(f"run {run.run_id[:8]}, which the tick before launched, is not over yet")
            looks = [whole]
        else:
            try:
                keys = _due_slices(whole, context.scheduled_execution_time)
            except TfrError as error:  # the folder that slices lie in cannot be listed
                return dg.SkipReason(str(error))
            if not keys:
                return dg.SkipReason("there is no slice yet")
            register(whole.dataset, keys, context.instance)
            all_looks = [whole.of_slice(key) for key in keys]
            busy = busy_slices(all_looks, context.instance)
            looks = [look for look in all_looks if look.partition not in busy]
            if not looks:
                return dg.SkipReason(f"runs are working on {', '.join(keys[:_SHOWN])}")
            if whole.dataset.slices.grows and not always:
                looks = [look for look in looks if why_stale(look.dataset)]
        requests = [asked for look in looks if (asked := _request_if_new(look, always, context.instance))]
        if not requests:
            return dg.SkipReason("nothing new: raw files and settings are those that all files were made from")
        if len(requests) > 1:  # then Dagster wants keys, of which it launches none twice
            at = context.scheduled_execution_time.isoformat()
            return [asked._replace(run_key=f"{asked.partition_key} {at}") for asked in requests]
        return requests

    return refresh


def _due_slices(whole: Look, now: datetime) -> list[str]:
    """Returns the slices that a schedule looks at, in order."""
    slices = whole.dataset.slices
    assert slices
    keys = whole.dataset.slice_keys(now)
    if not slices.of_time:
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
        state = "" if always else with_settings(look, files_state(look.dataset.source))
    except (TfrError, OSError):  # the run will say it where everybody looks
        state = ""
    if state and state == last_state(look, instance) and not _outdated(look):
        return None
    return request(look, state)


def _outdated(look: Look) -> bool:
    try:
        return bool(outdated(look.dataset))
    except TfrError:
        return True
