"""The job `Verify_NAME`: reads what is stored back, evaluates the checks of `shards` and `merged`, and writes nothing.

It is a job of one op, not of an asset: an asset would have to be materialized before the board is green, and a job that
checks files must not write them. Shards are chosen in the run's config; by default it takes all that is stored.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from tfr_assets.components.assets.current import evaluate_current
from tfr_assets.components.assets.file_checks import evaluate_merged, evaluate_shards
from tfr_assets.components.assets.jobs import job_tags, verify_job
from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import caught_up
from tfr_assets.components.metadata.report import latest_materialization, report_failure, write_report
from tfr_assets.errors import suggestion
from tfr_assets.writing.stray import names_in

_DESCRIPTION = """Reads all that is stored of the dataset back from the disk and checks it again: shards, merged files \
and what describes them (feature spec, inventory, plan). Writes nothing.

Launch it as it is, or name in the config the shards that alone are to be read. Damaged shards become failed \
partitions of the asset `shards`: choose "Failed" when you materialize it, and they are written again."""
_MOST_NAMED = 20  # files, in a message


class Chosen(dg.Config):
    """Which shards are verified."""

    shards: list[str] = Field(
        [], description="Partitions of the asset `shards`, to read no more. Default: all that is stored."
    )


def build_verify(whole: Look) -> dg.JobDefinition:
    """Returns the job that verifies what is stored of a dataset, or of one slice of it."""
    name = whole.dataset.name

    @dg.op(name=f"{name}_verify", out=dg.Out(dg.Nothing), description="Reads the files back.")
    def verify(context: dg.OpExecutionContext, config: Chosen) -> Iterator[Any]:
        look = caught_up(whole.in_run(context.run))
        chosen = _existing(look, config.shards)
        problems: list[str] = []
        with report_failure(look, context, "verification"):
            yield evaluate_current(look, context.instance)
            yield from _collecting(problems, evaluate_shards(look, chosen or look.partition_keys, context))
            if not chosen and _is_merged(look, context.instance):
                yield from _collecting(problems, evaluate_merged(look, context))
            if not chosen:
                problems += _beside(look)
            if problems:
                raise dg.Failure("\n".join(problems), allow_retries=False)
        write_report(look, context)
        yield dg.Output(None)

    @dg.job(name=verify_job(name), description=_DESCRIPTION, tags=job_tags(whole.dataset), partitions_def=whole.slices)
    def verify_dataset() -> None:
        verify()

    return verify_dataset


def _collecting(
    problems: list[str], evaluations: Iterator[dg.AssetCheckEvaluation]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yields evaluations, and keeps what the failure at their end says, so that the rest is verified, too."""
    try:
        yield from evaluations
    except dg.Failure as failure:
        problems.append(str(failure.description))


def _is_merged(look: Look, instance: dg.DagsterInstance) -> bool:
    """Whether there is, or was, a merged file."""
    return bool(names_in(look.dataset.layout.merged) or latest_materialization(look, "merged", instance))


def _beside(look: Look) -> list[str]:
    """Returns what is wrong with other files than those that checks have read: none or one message."""
    from tfr_assets.writing.stored import audit_folders

    dataset = look.current
    checked = {
        *(str(dataset.layout.shard_path(shard)) for shard in dataset.shard_keys),
        *(str(dataset.layout.merged_path(split)) for split in dataset.splits),
    }
    faults = [fault for report in audit_folders([dataset.layout.folder])[0] for fault in report.faults]
    wrong = [f"{each.path}: {each.kind.value} ({each.detail})" for each in faults if each.path not in checked]
    if not wrong:
        return []
    named = "\n".join(wrong[:_MOST_NAMED] + ["…"] * (len(wrong) > _MOST_NAMED))
    return [f"Materialize all of {dataset.title} to mend what lies beside its records:\n{named}"]


def _existing(look: Look, chosen: Sequence[str]) -> list[str]:
    keys = look.partition_keys
    for key in chosen:
        if key not in keys:
            raise dg.Failure(
                f"shards: {key!r} is no partition; {suggestion(key, keys, 'there are')}", allow_retries=False
            )
    return [key for key in keys if key in set(chosen)]
