"""What Dagster loads: every dataset in `defs/`, and how their steps are executed."""

import dagster as dg

from tfr_assets.components.config.load import load_all
from tfr_assets.components.runs.executor import build_executor


@dg.definitions
def defs() -> dg.Definitions:
    """Returns the definitions of all datasets."""
    return dg.Definitions.merge(load_all(), dg.Definitions(executor=build_executor()))
