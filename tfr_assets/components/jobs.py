"""Jobs of a dataset, and the schedule.

plan_shards looks at raw data · refresh makes everything · verify reads everything back · readers, writers measure
"""

from typing import Any

import dagster as dg

from tfr_assets.components.look import Look
from tfr_assets.components.runs import DATASET_TAG

_ALL_STEPS = {"dagster/retry_strategy": "ALL_STEPS"}  # see shards.py; what is there already is skipped anyway


def raw_job(name: str) -> str:
    """Returns the name of the job that takes the inventory, and plans the shards, without writing any."""
    return f"{name}_plan_shards"


def refresh_job(name: str) -> str:
    """Returns the name of the job that makes everything of a dataset."""
    return f"{name}_refresh"


def verify_job(name: str) -> str:
    """Returns the name of the job that checks what is stored."""
    return f"{name}_verify"


def readers_job(name: str) -> str:
    """Returns the name of the job that measures the readers."""
    return f"{name}_readers"


def writers_job(name: str) -> str:
    """Returns the name of the job that measures the writers."""
    return f"{name}_writers"


def all_partitions(keys: list[str]) -> dict[str, str]:
    """Returns the tags of a run over all partitions at once."""
    return {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}


def build_jobs(look: Look, partitions: dg.StaticPartitionsDefinition) -> list[Any]:
    """Returns the jobs of a dataset."""
    name = look.dataset.name

    def keys(*parts: str) -> dg.AssetSelection:
        return dg.AssetSelection.assets(*(look.key(part) for part in parts))

    def job(job_name: str, selection: dg.AssetSelection, description: str, by_shard: bool = True) -> Any:
        return dg.define_asset_job(
            job_name,
            selection,
            description=description,
            tags={DATASET_TAG: name, **_ALL_STEPS},
            partitions_def=partitions if by_shard else None,
        )

    return [
        job(
            raw_job(name),
            keys("raw").upstream(),
            "Takes the inventory and plans the shards. Writes none.",
            by_shard=False,
        ),
        # an asset's checks come with it
        job(
            refresh_job(name),
            keys("raw").upstream() | keys("shards", "merged"),
            "Raw data to checked, merged TFRecord files, in one run.",
        ),
        job(
            verify_job(name),
            keys("on_disk"),
            "Reads shards back from the disk and checks them again. Writes none.",
        ),
        job(readers_job(name), keys("readers", "reader_report"), "Measures and compares the readers.", by_shard=False),
        job(
            writers_job(name),
            keys("writers", "writer_report"),
            "Measures how fast each writer is, and tells which to use when.",
            by_shard=False,
        ),
    ]


def build_schedule(look: Look, cron: str) -> dg.ScheduleDefinition:
    """Returns the schedule that refreshes a dataset."""
    name = look.dataset.name

    @dg.schedule(
        name=f"{name}_schedule",
        job_name=refresh_job(name),
        cron_schedule=cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,  # whoever writes a schedule wants it to run
        description=f"Refreshes {name}: `{cron}`, in UTC.",
    )
    def refresh() -> dg.RunRequest:
        return dg.RunRequest(tags=all_partitions(look.dataset.shard_keys))

    return refresh
