"""What a worker is told of its run, and the words in which it answers."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableJob
from dagster._core.definitions.repository_definition import RepositoryLoadData
from dagster._core.execution.retries import RetryMode
from dagster._core.execution.step_dependency_config import StepDependencyConfig
from dagster._core.instance.ref import InstanceRef
from dagster._utils.error import SerializableErrorInfo


@dataclass(frozen=True)
class Assignment:
    """A run, as a worker needs it.

    Attributes:
        instance: Where events are recorded.
        job: How the job is loaded.
        fingerprint: The job that the run began with; see `fingerprint`.
        run: The run.
        run_config: Its configuration.
        retries: What a step does that asks to be run again.
        dependencies: When a step may start.
        loaded: What Dagster cached while it loaded the definitions.
        environment: Environment variables of the run's process, which the template may have been started before.
        folder: Its working directory.
    """

    instance: InstanceRef
    job: ReconstructableJob
    fingerprint: str
    run: dg.DagsterRun
    run_config: Mapping[str, Any]
    retries: RetryMode
    dependencies: StepDependencyConfig
    loaded: RepositoryLoadData | None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: str = field(default_factory=os.getcwd)


@dataclass(frozen=True)
class Over:
    """A step is over; the worker is free.

    Attributes:
        error: What prevented the step from reporting its end itself.
        interrupted: Whether that was an interrupt.
    """

    error: SerializableErrorInfo | None = None
    interrupted: bool = False


def rehashed(job: ReconstructableJob) -> ReconstructableJob:
    """Returns a job that came from another process as one that Dagster's cache of loaded jobs recognizes here.

    A job remembers its hash, also when it is pickled, and hashes of texts differ between processes.
    """
    return job.with_repository_load_data(job.repository.repository_load_data)


def fingerprint(job: dg.JobDefinition) -> str:
    """Returns a hash of a job and of its assets' code versions: of everything that a run must not see change."""
    layer = job.asset_layer
    versions = {key.to_user_string(): layer.get(key).code_version for key in layer.selected_asset_keys}
    text = json.dumps([job.get_job_snapshot_id(), versions], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
