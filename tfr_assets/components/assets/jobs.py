"""Jobs of a dataset.

Plan_shards looks at raw data · Refresh makes everything · Verify reads everything back · Bench_readers, Bench_writers
measure

The names begin with a capital letter for a reason: where several jobs hold the assets that are chosen in the UI,
"Materialize" launches the first one in ASCII order, and capital letters come before Dagster's own `__ASSET_JOB`. That
job knows no partitions: it would need a run for `raw`, one for `shards` and one for `merged`, none of them with the tag
that lets one run of a dataset through at a time.
"""

from typing import Any

import dagster as dg

from tfr_assets.components.attributes import Look
from tfr_assets.components.runs.slices import dataset_tags
from tfr_assets.writing.dataset import Dataset

ALL_STEPS = {"dagster/retry_strategy": "ALL_STEPS"}  # see shards.py; what is there already is skipped anyway


def raw_job(name: str) -> str:
    """Returns the name of the job that takes the inventory, and plans the shards, without writing any."""
    return f"Plan_shards_{name}"


def refresh_job(name: str) -> str:
    """Returns the name of the job that makes everything of a dataset."""
    return f"Refresh_{name}"


def verify_job(name: str) -> str:
    """Returns the name of the job that checks what is stored."""
    return f"Verify_{name}"


def readers_job(name: str) -> str:
    """Returns the name of the job that measures the readers."""
    return f"Bench_readers_{name}"


def writers_job(name: str) -> str:
    """Returns the name of the job that measures the writers."""
    return f"Bench_writers_{name}"


def all_partitions(keys: list[str]) -> dict[str, str]:
    """Returns the tags of a run over all partitions at once."""
    return {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}


def job_tags(dataset: Dataset) -> dict[str, str]:
    """Returns the tags of every run of a dataset's jobs."""
    return {**dataset_tags(dataset), **ALL_STEPS}


def build_jobs(look: Look) -> list[Any]:
    """Returns the jobs that make a dataset: the plan of its shards, and everything."""
    name = look.dataset.name
    return [
        dg.define_asset_job(
            raw_job(name),
            look.select("raw").upstream(),
            description="Takes the inventory and plans the shards. Writes none.",
            tags=job_tags(look.dataset),
            partitions_def=look.slices,
        ),
        # an asset's checks come with it
        dg.define_asset_job(
            refresh_job(name),
            look.select("raw").upstream() | look.select(*look.made),
            description="Raw data to checked, merged TFRecord files, in one run: Materialize all… → All → Launch.",
            tags=job_tags(look.dataset),
            partitions_def=look.partitions,
        ),
    ]


def build_bench_job(look: Look, job_name: str, description: str, *assets: str) -> Any:
    """Returns a job that materializes assets which measure."""
    return dg.define_asset_job(job_name, look.select(*assets), description=description, tags=job_tags(look.dataset))
