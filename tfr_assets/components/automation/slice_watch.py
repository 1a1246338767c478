"""A watch on raw data that comes in slices, which makes those that are new or have changed."""

import json
from collections.abc import Mapping

import dagster as dg

from tfr_assets.components.assets.current import busy_slices
from tfr_assets.components.assets.jobs import refresh_job
from tfr_assets.components.attributes import Look
from tfr_assets.components.automation.requests import request, with_settings
from tfr_assets.components.runs.slices import register
from tfr_assets.errors import TfrError
from tfr_assets.urls import named

_MOST_RUNS = 50  # that are asked for in one tick


def build_slice_watch(whole: Look, seconds: int) -> dg.SensorDefinition:
    """Returns the sensor that makes new slices, and those whose raw files have changed. It reads none of them.

    Files that have changed since the tick before may still be growing: they are left alone until the next one. Where a
    folder only grows, those that are new and have stayed as they are become a slice.
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
    def raw_changed(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        try:
            whole.dataset.catch_up()
            return _look(whole, context)
        except TfrError as error:  # what slices there are cannot be seen
            return dg.SkipReason(named(str(error)))

    return raw_changed


def _look(whole: Look, context: dg.SensorEvaluationContext) -> dg.SensorResult:
    from tfr_assets.writing.slices.append import append_new
    from tfr_assets.writing.slices.state import raw_state, why_new

    dataset = whole.dataset
    assert dataset.slices
    seen = json.loads(context.cursor or "{}")
    left = append_new(dataset, seen.get("new", {}))
    before: dict[str, list[str]] = seen.get("slices", {})  # by slice: state, state that was launched
    after: dict[str, list[str]] = {}
    looks = {key: whole.of_slice(key) for key in dataset.slice_keys()}
    register(dataset, list(looks), context.instance)
    busy = busy_slices(list(looks.values()), context.instance)
    requests: list[dg.RunRequest] = []
    for key, look in looks.items():
        last, launched = before.get(key, ["", ""])
        try:
            state = raw_state(look.dataset)
        except (TfrError, OSError):  # a run would say it
            state = last
        if not state and key not in before:  # where all files are gone, a run says so
            continue
        if dataset.slices.append and key not in before:  # its files have stayed as they are already
            last = state
        if state == last != launched and key not in busy and len(requests) < _MOST_RUNS:
            if why_new(look.dataset, state):
                asked = with_settings(look, state)
                requests.append(request(look, asked, f"{key} {asked}" if dataset.slices.append else None))
            launched = state
        after[key] = [state, launched]
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else dg.SkipReason(_why_none(left)),
        cursor=json.dumps({"slices": after, "new": left}),
    )


def _why_none(left: Mapping[str, str]) -> str:
    more = f"; {len(left)} new files may still be growing" if left else ""
    return f"no slice has new raw files that stay as they are{more}"
