"""A step of a run makes something visible in a store only while its run holds the lock there."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import dagster as dg

from tfr_assets.layout import Layout
from tfr_assets.storage.objects.guard import only_while_held
from tfr_assets.urls import url_of

HELD_APART = frozenset({"warm_workers", "celery_workers", "k8s_jobs", "ray_jobs"})
"""Names of the executors whose runs lock what they work on."""


class _Step(Protocol):
    @property
    def job_def(self) -> dg.JobDefinition: ...

    @property
    def run(self) -> dg.DagsterRun: ...


def while_held(context: _Step, layout: Layout) -> AbstractContextManager[None]:
    """Has a step write nothing below a dataset's folder, while the block runs, once its run has lost the lock there.

    Nothing is looked for on a disk, whose locks cannot be lost, or where another executor runs the step.

    Args:
        context: Of the step.
        layout: Where that lies which the run works on.
    """
    url = url_of(layout.folder)
    if url is None or context.job_def.executor_def.name not in HELD_APART:
        return nullcontext()
    return only_while_held(url, layout.lock.name, context.run.run_id)
