"""Assets that follow each other, after a change of what they are made from."""

from typing import Any

import dagster as dg

from tfr_assets.components.assets.jobs import job_tags
from tfr_assets.components.attributes import Look

# `AutomationCondition.eager()` takes every materialization for a change, also of the same content
_CHANGED = dg.AutomationCondition.data_version_changed() | dg.AutomationCondition.newly_missing()
ON_CHANGE: dg.AutomationCondition[Any] = (
    dg.AutomationCondition.any_deps_match(_CHANGED).since_last_handled()
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
