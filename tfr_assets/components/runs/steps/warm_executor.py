"""The executor: decides with Dagster's own `ActiveExecution` which step is next, and has the workers do it."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.events import DagsterEvent, EngineEventData
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.active import ActiveExecution
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.execution.plan.objects import StepFailureData
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.execution.step_dependency_config import StepDependencyConfig
from dagster._core.executor.base import Executor
from dagster._utils.error import SerializableErrorInfo

from tfr_assets.components.runs.steps.assignment import Assignment, Over, fingerprint
from tfr_assets.components.runs.steps.crew import Crew, Died
from tfr_assets.components.runs.steps.fork_server import PATIENCE, TemplateDied
from tfr_assets.processes import how_it_ended

STOPPING = "stopping the running steps"  # how the event starts that tells of an interrupt
_STOPPING = f"{STOPPING}; those that have not ended in {PATIENCE:g} s are killed, or at once if you interrupt again"
_POLL_SECONDS = 0.1  # how long an interrupt, a retry or a free slot of a pool may go unnoticed


@dataclass(frozen=True)
class WarmExecutor(Executor):
    """Executes steps in workers that take one after another.

    Attributes:
        preload: The module that names what workers have imported.
        max_concurrent: How many steps run at once.
        retry_mode: Whether steps are run again that ask for it.
        tag_limits: How many steps with a tag run at once.
        dependencies: When a step may start.
    """

    preload: str
    max_concurrent: int
    retry_mode: RetryMode
    tag_limits: list[dict[str, Any]]
    dependencies: StepDependencyConfig

    @property
    def retries(self) -> RetryMode:
        """See `Executor`."""
        return self.retry_mode

    @property
    def step_dependency_config(self) -> StepDependencyConfig:
        """See `Executor`."""
        return self.dependencies

    def execute(self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan) -> Iterator[DagsterEvent]:
        """See `Executor`."""
        instance, run, loaded = plan_context.instance, plan_context.dagster_run, execution_plan.repository_load_data
        job = plan_context.reconstructable_job.with_repository_load_data(loaded)
        began_with = fingerprint(job.get_definition())
        assignment = Assignment(
            instance.get_ref(), job, began_with, run, plan_context.run_config, self.retries, self.dependencies, loaded
        )
        yield DagsterEvent.engine_event(
            plan_context,
            f"Executing steps in up to {self.max_concurrent} workers of process {os.getpid()}",
            EngineEventData.multiprocess(os.getpid(), execution_plan.step_keys_to_execute),
        )
        with (
            InstanceConcurrencyContext(instance, run) as pools,
            ActiveExecution(
                execution_plan,
                retry_mode=self.retries,
                max_concurrent=self.max_concurrent,
                tag_concurrency_limits=self.tag_limits,
                instance_concurrency_context=pools,
                step_dependency_config=self.dependencies,
            ) as active,
            Crew(self.preload, job, assignment) as crew,
        ):
            yield from self._follow(plan_context, active, crew)

    def _follow(
        self, plan_context: PlanOrchestrationContext, active: ActiveExecution, crew: Crew
    ) -> Iterator[DagsterEvent]:
        """Executes the plan, and yields the events.

        Raises:
            dg.DagsterExecutionInterruptedError: The run was stopped.
        """
        stopping = False
        reported: set[str] = set()  # steps in work that have said how they ended
        while crew.busy or not (stopping or active.is_complete):
            if active.check_for_interrupts():
                yield DagsterEvent.engine_event(plan_context, _STOPPING, EngineEventData.interrupted(crew.busy))
                stopping = True
                active.mark_interrupted()
                crew.interrupt()
            if not (stopping or crew.ready_within(_POLL_SECONDS)):
                continue
            while not stopping and (steps := active.get_steps_to_execute(self.max_concurrent - len(crew.busy))):
                for step in steps:
                    yield DagsterEvent.step_worker_starting(
                        plan_context.for_step(step), f'Giving "{step.key}" to a worker', {}
                    )
                    try:
                        crew.start(step.key, active.get_known_state())
                    except TemplateDied as error:
                        yield from self._fail(plan_context, active, step.key, _template_died(str(error)))
            yield from active.concurrency_event_iterator(plan_context)
            for key, what in crew.receive(_POLL_SECONDS):
                if isinstance(what, DagsterEvent):
                    yield what
                    active.handle_event(what)
                    if what.is_step_failure or what.is_step_success or what.is_step_up_for_retry:
                        reported.add(key)
                    continue
                if isinstance(what, Over):
                    crew.release(key)
                    if key not in reported and what.error:
                        yield from self._fail(plan_context, active, key, what.error, final=what.interrupted)
                elif key not in reported:
                    yield from self._fail(plan_context, active, key, _died(key, what), final=stopping)
                active.verify_complete(plan_context, key)
                reported.discard(key)
            yield from active.plan_events_iterator(plan_context)
        if stopping:
            raise dg.DagsterExecutionInterruptedError

    def _fail(
        self,
        plan_context: PlanOrchestrationContext,
        active: ActiveExecution,
        key: str,
        error: SerializableErrorInfo,
        final: bool = False,
    ) -> Iterator[DagsterEvent]:
        """Reports a step that could not do so itself: failed, or to be run again if its policy wants that."""
        context = plan_context.for_step(active.get_step_by_key(key))
        if final:
            event = DagsterEvent.step_failure_event(context, StepFailureData(error=error, user_failure_data=None))
        else:
            event = self.log_failure_or_retry_event_after_error(context, error, active.get_known_state())
        yield event
        active.handle_event(event)


def _died(key: str, died: Died) -> SerializableErrorInfo:
    """Returns the words for a worker that ended while it executed a step."""
    if died.status is None:
        return _template_died(died.template)
    says = f"step {key}: its process {died.pid} {how_it_ended(died.status)}"
    if died.status == -signal.SIGKILL and died.killed_because:
        says += f", by this run: {died.killed_because}. Launch the run again"
    elif died.status == -signal.SIGKILL:
        says += (
            ", most likely by the system because memory ran out (or by `kill -9`). Let fewer steps run at once "
            "(TFR_WORKERS=1), give the machine or container more memory, or plan more, smaller shards. Then launch the "
            "run again"
        )
    elif died.status < 0:
        says += (
            ". A signal that nobody sent is a crash in compiled code, of this project, of a library or of your own "
            "function; please report the first two. Launch the run again"
        )
    else:
        says += ", without a word: code that ran in it must have called `exit`. Launch the run again"
    return _error(f"{says}; what is complete is not written a second time", "WorkerDied")


def _template_died(how: str) -> SerializableErrorInfo:
    return _error(
        f"the process that the workers are forked from {how}, and all steps in work ended with it. If nobody killed "
        "it, the system did: memory ran out. Launch the run again; what is complete is not written a second time",
        "TemplateDied",
    )


def _error(message: str, kind: str) -> SerializableErrorInfo:
    return SerializableErrorInfo(message, [], kind)
