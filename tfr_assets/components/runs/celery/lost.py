"""Steps that a worker took and nobody works on any more: Celery itself waits for their results for ever."""

import time
from typing import Any

from celery import Celery
from celery.result import AsyncResult
from kombu.exceptions import OperationalError

from tfr_assets.errors import TfrError

_SECONDS_BETWEEN_LOOKS, _TIMEOUT = 10.0, 3.0
_LOOKS = 3  # in which a worker does not say that it works on a step, until the step counts as lost
LONGEST_WAIT = 3600.0  # seconds in which no step of a run is taken by any worker


class StepLost(TfrError):
    """Nobody works on a step."""


class Workers:
    """What the workers of a run say that they do.

    Args:
        app: By which they are asked.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        # what the broker's own client raises, which Celery passes on while it waits for answers
        self._broken: tuple[type[Exception], ...] = app.connection_for_write().connection_errors
        self._active: dict[str, tuple[float, set[str] | None]] = {}
        self.lost = False  # whether a step was, so that the run will fail
        self.progress = time.monotonic()  # when a step was last taken, or seen to be worked on

    def look(self, worker: str) -> tuple[float, set[str] | None]:
        """Returns when a worker was last asked, and what it works on: ids of tasks; None where nothing is known."""
        asked, found = self._active.get(worker, (0.0, None))
        if time.monotonic() - asked > _SECONDS_BETWEEN_LOOKS:
            found = self._ask(worker)
            asked = time.monotonic()
            self._active[worker] = asked, found
        return asked, found

    def _ask(self, worker: str) -> set[str] | None:
        try:
            said = self._app.control.inspect([worker], timeout=_TIMEOUT).active()
        except (OperationalError, OSError, *self._broken):  # the broker restarts
            return None
        return {task["id"] for task in (said or {}).get(worker, ())}


class WatchedResult:
    """A step's result, which is also there when the step is lost: an error then.

    Args:
        step: The step's key.
        result: Celery's.
        workers: Who may work on it.
    """

    def __init__(self, step: str, result: AsyncResult, workers: Workers) -> None:
        self._step, self._result, self._workers = step, result, workers
        self._missed, self._looked = 0, 0.0
        self._problem = ""

    def ready(self) -> bool:
        """Whether the step has ended, or is lost."""
        if self._result.ready():
            self._workers.progress = time.monotonic()
            return True
        self._problem = self._problem or self._find_problem()
        self._workers.lost = self._workers.lost or bool(self._problem)
        return bool(self._problem)

    def get(self) -> Any:
        """Returns the step's events.

        Raises:
            StepLost: It is lost.
            Exception: As the worker says.
        """
        if self._problem:
            self._result.revoke(terminate=True)
            raise StepLost(self._problem)
        return self._result.get()

    def revoke(self) -> None:
        """Ends the step, also one that has begun: what it writes is whole or absent."""
        self._result.revoke(terminate=True)

    def _find_problem(self) -> str:
        if self._result.state != "STARTED":
            if self._workers.lost:
                return f"{self._step} was not begun, because another step was lost"
            waited = time.monotonic() - self._workers.progress
            if waited < LONGEST_WAIT:
                return ""
            return (
                f"no worker has taken {self._step}, or any other step, for {waited / 60:.0f} minutes. Is one running? "
                "celery -A tfr_assets.components.runs.celery.app worker -Q dagster"
            )
        worker = str((self._result.info or {}).get("hostname"))
        looked, active = self._workers.look(worker)
        if looked > self._looked and active is not None:
            self._looked = looked
            self._missed = 0 if self._result.id in active else self._missed + 1
            if not self._missed:
                self._workers.progress = looked
        if self._missed < _LOOKS:
            return ""
        return (
            f"{self._step} was begun by the worker {worker}, which does not work on it any more: the worker was "
            "killed, restarted or cut off. Launch the run again: shards that are there are not written again"
        )
