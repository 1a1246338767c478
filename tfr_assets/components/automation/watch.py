"""A watch, which refreshes a dataset after a change of its raw files."""

from collections.abc import Iterator

import dagster as dg

from tfr_assets.components.assets.jobs import refresh_job
from tfr_assets.components.attributes import Look
from tfr_assets.components.automation.requests import request, with_settings
from tfr_assets.errors import TfrError
from tfr_assets.sources import files_state


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
        yield request(look, with_settings(look, state))

    return raw_changed
