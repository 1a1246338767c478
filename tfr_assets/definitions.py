"""What Dagster loads: every dataset in `defs/`, and how their steps are executed."""

from pathlib import Path

import dagster as dg

from tfr_assets.components.executor import build_executor


@dg.definitions
def defs() -> dg.Definitions:
    """Returns the definitions of all datasets."""
    datasets = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(datasets, dg.Definitions(executor=build_executor()))
