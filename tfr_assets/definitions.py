"""What Dagster loads: every dataset in `defs/`, and how their steps are executed."""

import dagster as dg

from tfr_assets.components.executor import build_executor
from tfr_assets.components.load import load_all


@dg.definitions
def defs() -> dg.Definitions:
    """Returns the definitions of all datasets."""
    return dg.Definitions.merge(load_all(), dg.Definitions(executor=build_executor()))
