"""Runs that are asked for: each says of which raw files and settings, so that none is asked for twice."""

import dagster as dg

from tfr_assets.components.assets.jobs import all_partitions, refresh_job, verify_job
from tfr_assets.components.attributes import Look

_LAST_RUNS = 20  # among which the last refresh is looked for
_STATE = "tfr/raw_state"  # tag of a run: what raw files and settings were when it was asked for


def request(look: Look, state: str, key: str | None = None) -> dg.RunRequest:
    """Returns the request for a run that refreshes a dataset, or a slice.

    Args:
        look: The dataset, or the slice.
        state: As `with_settings` gives it; nothing, where that is not known.
        key: Of requests of one schedule or sensor with the same key, Dagster launches one; None: all.
    """
    tags = {_STATE: state} if state else {}
    if look.partition:
        return dg.RunRequest(run_key=key, partition_key=look.partition, tags=tags | look.run_tags)
    return dg.RunRequest(run_key=key, tags=all_partitions(look.partition_keys) | tags)


def with_settings(look: Look, state: str) -> str:
    """Returns what changes when the state of the raw files or a setting does."""
    return f"{state}-{look.raw_version}-{look.shards_version}"


def last_state(look: Look, instance: dg.DagsterInstance) -> str:
    """Returns the state for which the stored files were made and found to be whole; nothing where that is not known.

    That is what the last refresh was asked for, unless it failed, or damage was found since. One that was launched by
    hand, or re-executed with the tags of another, says nothing of it.
    """
    for run in instance.get_runs(dg.RunsFilter(tags=look.run_tags), limit=_LAST_RUNS):
        if run.job_name == verify_job(look.dataset.name) and run.is_success:
            continue
        if run.job_name in (refresh_job(look.dataset.name), verify_job(look.dataset.name)):
            return run.tags.get(_STATE, "") if run.is_success and not run.parent_run_id else ""
    return ""
