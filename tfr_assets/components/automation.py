"""What refreshes a dataset by itself: a schedule, a watch on its raw files, and assets that follow each other."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from tfr_assets.components.jobs import all_partitions, job_tags, refresh_job
from tfr_assets.components.look import Look
from tfr_assets.errors import TfrError

# `AutomationCondition.eager()` takes every materialization for a change, also of the same content
_CHANGED = dg.AutomationCondition.data_version_changed() | dg.AutomationCondition.newly_missing()
ON_CHANGE: dg.AutomationCondition[Any] = (
    dg.AutomationCondition.any_deps_match(_CHANGED).since_last_handled()
    & ~dg.AutomationCondition.any_deps_missing()
    & ~dg.AutomationCondition.any_deps_in_progress()
    & ~dg.AutomationCondition.in_progress()
)


def build_schedule(look: Look, cron: str) -> dg.ScheduleDefinition:
    """Returns the schedule that refreshes a dataset."""
    name = look.dataset.name

    @dg.schedule(
        name=f"{name}_schedule",
        job_name=refresh_job(name),
        cron_schedule=cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,  # whoever writes a schedule wants it to run
        description=f"Refreshes {name}: `{cron}`, in UTC.",
    )
    def refresh() -> dg.RunRequest:
        return dg.RunRequest(tags=all_partitions(look.partition_keys))

    return refresh


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
        from tfr_assets.sources import files_state

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
        yield dg.RunRequest(run_key=None, tags=all_partitions(look.partition_keys))

    return raw_changed


def build_follower(look: Look) -> dg.AutomationConditionSensorDefinition:
    """Returns the sensor that launches what the automation conditions of a dataset's assets ask for."""
    name = look.dataset.name
    return dg.AutomationConditionSensorDefinition(
        name=f"{name}_follows_raw",
        target=look.select("shards", "merged"),
        default_status=dg.DefaultSensorStatus.RUNNING,
        run_tags=job_tags(name),
        description="Materializes shards and merged when what they are made from has changed.",
    )
