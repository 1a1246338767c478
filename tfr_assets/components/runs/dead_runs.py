"""Runs whose process is dead: how they are noticed, and ended, so that none holds up another.

A process that executes a run keeps a locked file `running/RUN_ID` beside Dagster's storage. The kernel unlocks it when
the process dies, so a file without a lock is that of a run that nobody works on. Runs of other machines have theirs
elsewhere and are left alone.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from tfr_assets.storage.locks import if_abandoned, life_sign

DATASET_TAG = "tfr/dataset"  # of a run, an asset: dagster.yaml lets one run a dataset through at a time
TERMINAL_TAG = "tfr/terminal"  # of a run that `tfr run` executes: where
DEAD = "the process of this run is dead: killed, out of memory, or the machine was restarted. Launch it again"

_here: dict[str, Callable[[], bool]] = {}
_kept: dict[Path, ExitStack] = {}  # signs of runs that Dagster may not have recorded the end of yet


@contextmanager
def alive(instance: dg.DagsterInstance, run_id: str, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Shows to other processes that this one executes a run, while the block runs.

    Args:
        instance: Where the run is recorded.
        run_id: The run.
        stopped: Tells whether somebody has stopped the run on purpose; see `is_stopped`.
    """
    if run_id in _here:
        yield
        return
    with ExitStack() as stack:
        # a filesystem may have no locks: when this process is killed, nobody will notice at once
        with suppress(OSError):
            stack.enter_context(life_sign(_folder(instance) / run_id))
        _here[run_id] = stopped
        stack.callback(_here.pop, run_id)
        yield


def keep_alive(instance: dg.DagsterInstance, run_id: str) -> None:
    """Shows to other processes that this one executes a run, until its end is recorded.

    An executor is over before Dagster records that, and has no say in it. So the sign stays until the process ends, or
    executes another run; whoever finds it then removes it.
    """
    folder = _folder(instance)
    for path in [path for path in _kept if path.parent == folder]:
        run = instance.get_run_by_id(path.name)
        if run is None or run.is_finished:
            _kept.pop(path).close()
    if run_id not in _here and (path := folder / run_id) not in _kept:
        with suppress(OSError):  # as above
            _kept[path] = ExitStack()
            _kept[path].enter_context(life_sign(path))


def is_stopped(run_id: str) -> bool:
    """Whether somebody has stopped a run of this process on purpose, by Ctrl-C for one."""
    return run_id in _here and _here[run_id]()


def is_dead(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Whether the process that executed a run is dead, as far as this machine can know."""
    with if_abandoned(_folder(instance) / run_id) as dead:
        return dead


def end_dead_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Ends the runs whose process is dead, and frees the places in pools that ended runs still hold.

    Returns:
        The runs that were ended, as they were before.
    """
    ended = []
    folder = _folder(instance)
    for path in sorted(folder.glob("[!.]*")):  # a name with a dot is that of a life sign in the making
        with if_abandoned(path) as dead:
            if dead:
                run = instance.get_run_by_id(path.name)
                if run and not run.is_finished:
                    _end(instance, run)
                    ended.append(run)
                path.unlink(missing_ok=True)
    _free_pools(instance)
    return ended


def unfinished_run(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> dg.DagsterRun | None:
    """Returns a run with some tags that is queued or executes; None if there is none."""
    return next(iter(instance.get_runs(dg.RunsFilter(tags=tags, statuses=NOT_FINISHED_STATUSES), limit=1)), None)


def _folder(instance: dg.DagsterInstance) -> Path:
    return Path(instance.root_directory) / "running"


def _end(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, DEAD)
    else:
        instance.report_run_failed(run, DEAD)


def _free_pools(instance: dg.DagsterInstance) -> None:
    """A run that dies keeps its place in a pool, and the next one would wait for ever."""
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return
    for run_id in storage.get_concurrency_run_ids():
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            storage.free_concurrency_slots_for_run(run_id)
