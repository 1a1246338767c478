"""A worker: executes one step after another for as long as its channel is open."""

import os
import sys
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle

import dagster as dg
from dagster._core.events import DagsterEvent
from dagster._core.execution.api import create_execution_plan, execute_plan_iterator
from dagster._core.execution.context_creation_job import create_context_free_log_manager
from dagster._core.execution.plan.state import KnownExecutionState
from dagster._utils.error import serializable_error_info_from_exc_info
from dagster._utils.interrupts import capture_interrupts, pop_captured_interrupt

from tfr_assets.components.runs.steps.assignment import Assignment, Over, fingerprint, rehashed
from tfr_assets.errors import StaleError

_INTERRUPTS = (KeyboardInterrupt, dg.DagsterExecutionInterruptedError)


def work(channel: Connection) -> None:
    """Receives an `Assignment` and its standard output and error, then (key of a step, known state) again and again.

    Of each step its events are sent, then `Over`. An interrupt (SIGINT, SIGTERM) ends the step, not the worker, which
    ends when the channel is closed.
    """
    with capture_interrupts():
        try:
            assignment: Assignment = channel.recv()
            for stream in (1, 2):
                os.dup2(handle := recv_handle(channel), stream)
                os.close(handle)
            os.environ.clear()
            os.environ.update(assignment.environment)
            os.chdir(assignment.folder)
            with dg.DagsterInstance.from_ref(assignment.instance) as instance:
                while True:
                    channel.send(_execute(assignment, instance, channel, *channel.recv()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return  # the run is over


def _execute(
    assignment: Assignment, instance: dg.DagsterInstance, channel: Connection, key: str, state: KnownExecutionState
) -> Over:
    try:
        log = create_context_free_log_manager(instance, assignment.run)
        pid = str(os.getpid())
        channel.send(
            DagsterEvent.step_worker_started(
                log,
                assignment.run.job_name,
                message=f'Executing step "{key}" in process {pid}.',
                metadata={"pid": dg.MetadataValue.text(pid)},
                step_key=key,
            )
        )
        job = rehashed(assignment.job)
        if fingerprint(job.get_definition()) != assignment.fingerprint:
            raise StaleError(  # noqa: TRY301 - it is reported as everything else that keeps a step from running
                "the definitions changed while the run was starting: a YAML file was edited, for one. Launch it again"
            )
        plan = create_execution_plan(job, assignment.run_config, [key], state, repository_load_data=assignment.loaded)
        for event in execute_plan_iterator(
            plan,
            job,
            assignment.run,
            instance,
            retry_mode=assignment.retries.for_inner_plan(),
            run_config=assignment.run_config,
            step_dependency_config=assignment.dependencies,
        ):
            channel.send(event)
        return Over()
    except (Exception, *_INTERRUPTS) as error:
        return Over(serializable_error_info_from_exc_info(sys.exc_info()), isinstance(error, _INTERRUPTS))
    finally:
        pop_captured_interrupt()  # one that came too late for this step is not meant for the next
