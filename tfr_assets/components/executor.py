"""How steps are executed: one process each, forked from a server that has imported everything they need."""

import os

import dagster as dg

from tfr_assets.components.apart import held_apart

WORKERS_VARIABLE = "TFR_WORKERS"
PRELOAD = "tfr_assets.components.preload"


def build_executor() -> dg.ExecutorDefinition:
    """Returns the executor; `$TFR_WORKERS` says how many steps run at once, by default one a processor."""
    workers = int(os.environ.get(WORKERS_VARIABLE) or os.cpu_count() or 1)
    executor = dg.multiprocess_executor.configured(
        {"max_concurrent": workers, "start_method": {"forkserver": {"preload_modules": [PRELOAD]}}},
        name="one_process_a_step",
    )
    return held_apart(executor)
