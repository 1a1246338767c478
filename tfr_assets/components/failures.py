"""How a step fails: in a user's words where a user can mend it, again where waiting may help, loudly otherwise."""

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import dagster as dg
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent

from tfr_assets.components.attributes import Look
from tfr_assets.errors import TfrError
from tfr_assets.urls import named

_RETRIES = 2
_SECONDS_BETWEEN = 2
# a busy network drive, a dropped connection: not a full disk, a missing file or a forbidden one
_TRANSIENT = {
    errno.EAGAIN,
    errno.EBUSY,
    errno.EINTR,
    errno.EIO,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.ECONNRESET,
    errno.ECONNREFUSED,
    errno.ECONNABORTED,
    errno.EPIPE,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
}


class _Partitioned(Protocol):
    @property
    def partition_keys(self) -> Sequence[str]: ...

    @property
    def run(self) -> dg.DagsterRun: ...


@contextmanager
def reported(**where: str) -> Iterator[None]:
    """Turns errors into what Dagster shows best.

    A `TfrError` fails the step with its message alone. An error that may pass by itself is tried again. Any other is a
    bug and keeps its stack trace.

    Args:
        where: Shown as metadata of the failure, such as the shard's key.

    Raises:
        dg.Failure: A problem that a person must mend.
        dg.RetryRequested: A problem that may be gone in a moment.
    """
    try:
        yield
    except (TfrError, OSError) as error:
        if is_transient(error):
            raise dg.RetryRequested(max_retries=_RETRIES, seconds_to_wait=_SECONDS_BETWEEN) from error
        if not isinstance(error, TfrError):
            raise
        shown = {**where, "problem": type(error).__name__}
        # where the message wraps somebody else's exception, such as one from a user's function, that one's trace helps
        raise dg.Failure(named(str(error)), metadata=shown, allow_retries=False) from error.__cause__


def caught_up(look: Look) -> Look:
    """Returns how a dataset appears, after a look at what lies in its store, if it lies in one.

    Raises:
        dg.Failure: The store refused.
        dg.RetryRequested: As `reported`.
    """
    with reported(dataset=look.dataset.title):
        look.dataset.catch_up()
    return look


def chosen_partitions(context: _Partitioned) -> list[str]:
    """Returns the partitions of the run: one, a range or all.

    Raises:
        dg.Failure: The run was started without (Dagster itself says only that it is "non-partitioned"), or for
            partitions that are there no more.
    """
    try:
        return list(context.partition_keys)
    except dg.DagsterInvalidInvocationError as error:
        tags = context.run.tags
        first, last = (
            tags.get(f"dagster/asset_partition_range_{end}") or tags.get("dagster/partition")
            for end in ("start", "end")
        )
        raise dg.Failure(
            f"this run was launched for the partitions {first} to {last}, but the dataset has others by now: its YAML "
            "changed. Reload the definitions and launch again",
            allow_retries=False,
        ) from error
    except dg.DagsterInvariantViolationError:
        raise dg.Failure(
            "this run was started without partitions. In the UI, choose them when you launch it; "
            "on the command line, `tfr run NAME` takes all",
            allow_retries=False,
        ) from None


def mark_failed(
    context: dg.OpExecutionContext | dg.AssetCheckExecutionContext, key: dg.AssetKey, partitions: Iterable[str | None]
) -> None:
    """Makes Dagster show an asset's partitions as failed, once this run has failed, until they are materialized again.

    Dagster takes a partition for failed where the last that is known of it is the plan of a run which failed. So the
    run records that it means to materialize it. There is no event that says that stored data is damaged.

    Args:
        context: Of a step which is going to fail.
        key: The asset.
        partitions: Its damaged partitions; None where it has no partitions.
    """
    for partition in partitions:
        event = DagsterEvent.build_asset_materialization_planned_event(
            context.run.job_name,
            context.get_step_execution_context().step.key,
            AssetMaterializationPlannedData(key, partition=partition),
        )
        context.instance.report_dagster_event(event, context.run.run_id)


def is_transient(error: BaseException | None) -> bool:
    """Whether an error, or the one that caused it, may not happen again."""
    while error is not None:
        if isinstance(error, OSError):
            return error.errno in _TRANSIENT or isinstance(error, ConnectionError | TimeoutError)
        error = error.__cause__
    return False
