"""Assets that follow each other, after a change of what they are made from."""

from typing import Any

import dagster as dg

from tfr_assets.components.assets.jobs import job_tags
from tfr_assets.components.attributes import Look

_updated = dg.AutomationCondition.newly_updated()
_requested = dg.AutomationCondition.newly_requested()
_deps_updated = dg.AutomationCondition.any_deps_match(_updated)
_deps_changed = dg.AutomationCondition.any_deps_match(dg.AutomationCondition.data_version_changed())
# `AutomationCondition.eager()` takes every materialization for a change, also of the same content. And where an asset
# and what it is made from were both materialized between two ticks, `since_last_handled` takes the change for handled:
# only updates and requests, each compared by itself, are compared by their times.
ON_CHANGE: dg.AutomationCondition[Any] = (
    _deps_updated.since(_updated)
    & _deps_updated.since(_requested)
    & _deps_changed.since(_requested & ~_deps_changed)
    & ~dg.AutomationCondition.any_deps_missing()
    & ~dg.AutomationCondition.any_deps_in_progress()
    & ~dg.AutomationCondition.in_progress()
)


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
