"""The job `Verify_NAME`: reads stored shards back, evaluates the checks of `shards`, and writes nothing.

It is a job of one op, not of an asset: an asset would have to be materialized before the board is green, and a job that
checks shards must not write them. Shards are chosen in the run's config; by default it takes all.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from tfr_assets.components.assets.current import evaluate_current
from tfr_assets.components.assets.file_checks import evaluate_shards
from tfr_assets.components.assets.jobs import job_tags, verify_job
from tfr_assets.components.attributes import Look
from tfr_assets.components.metadata.report import write_report
from tfr_assets.errors import suggestion

_DESCRIPTION = """Reads shards back from the disk and checks them again. Writes none.

It does not look at merged files, feature spec, inventory or plan; `tfr verify NAME` does.

Launch it as it is for all shards, or name some in the config. Damaged ones become failed partitions of the asset \
`shards`: choose "Failed" when you materialize it, and they are written again."""


class Chosen(dg.Config):
    """Which shards are verified."""

    shards: list[str] = Field([], description="Partitions of the asset `shards`. Default: all of them.")


def build_verify(look: Look) -> dg.JobDefinition:
    """Returns the job that verifies a dataset's shards."""
    name = look.dataset.name

    @dg.op(name=f"{name}_verify", out=dg.Out(dg.Nothing), description="Reads the shards back.")
    def verify(context: dg.OpExecutionContext, config: Chosen) -> Iterator[Any]:
        partitions = _existing(look, config.shards) or look.partition_keys
        try:
            yield evaluate_current(look, context.instance)
            yield from evaluate_shards(look, partitions, context)
        finally:
            write_report(look, context)
        yield dg.Output(None)

    @dg.job(name=verify_job(name), description=_DESCRIPTION, tags=job_tags(name))
    def verify_shards() -> None:
        verify()

    return verify_shards


def _existing(look: Look, chosen: Sequence[str]) -> list[str]:
    keys = look.partition_keys
    for key in chosen:
        if key not in keys:
            raise dg.Failure(
                f"shards: {key!r} is no partition; {suggestion(key, keys, 'there are')}", allow_retries=False
            )
    return [key for key in keys if key in set(chosen)]
