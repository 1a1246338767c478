"""The workers of a run, as its own process sees them. Nothing here knows Dagster, so that it can be started first."""

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.reduction import send_handle
from typing import Any, Self

from tfr_assets.components.runs.steps.fork_server import PATIENCE, Template, TemplateDied, Worker
from tfr_assets.components.runs.steps.template import STREAMS, Definitions

PRELOAD = "tfr_assets.components.runs.preload"
STEPS_PER_WORKER = 200  # then a fresh one takes its place: what user code leaves behind does not add up for ever
_ATTEMPTS = 3  # to have a step done by a worker that is alive
_AGAIN = 1.0  # seconds after which another interrupt means: now. Several signals of one cause come at once
_LAST_WORDS = 5.0  # seconds that a process has to end after it closed its connection


@dataclass(frozen=True)
class Died:
    """A worker ended while it executed a step.

    Attributes:
        pid: Its process.
        status: Its exit code, negative for a signal; None where that is not known, because the template died as well.
        template: How the template ended, if it did.
        killed_because: Why the crew killed it, if it did.
    """

    pid: int
    status: int | None
    template: str = ""
    killed_because: str = ""


_prepared: list[Template] = []


def prepare(dataset: str) -> None:
    """Starts the template of this process's next run, which is one of a dataset, before that run is there."""
    _prepared.append(Template(PRELOAD, Definitions("tfr_assets.components.config.load", "load_definitions", dataset)))


def stop_prepared() -> None:
    """Ends templates that no run has used."""
    while _prepared:
        _prepared.pop().close()


class Crew:
    """The workers of one run. A context manager, which leaves no process behind."""

    def __init__(self, preload: str, job: Any, assignment: Any) -> None:
        """Lets workers be forked when they are needed.

        Args:
            preload: The module that names what the template imports.
            job: What it loads.
            assignment: What each worker is told first.
        """
        self._preload, self._job, self._assignment = preload, job, assignment
        self._template: Template | None = None
        self._idle: list[Worker] = []
        self._busy: dict[str, Worker] = {}
        self._interrupted_at: float | None = None
        self._deadline = math.inf  # of the steps that were interrupted

    def __enter__(self) -> Self:
        self._template = _prepared.pop(0) if _prepared else Template(self._preload, self._job)
        return self

    @property
    def busy(self) -> list[str]:
        """The keys of the steps that are being executed."""
        return list(self._busy)

    def ready_within(self, seconds: float) -> bool:
        """Waits until workers can be forked; returns whether `start` will not have to."""
        return self._template is None or self._template.ready_within(seconds)

    def start(self, key: str, state: Any) -> None:
        """Gives a step to a worker.

        Raises:
            TemplateDied: There is no worker to be had, although it was started anew.
        """
        for _ in range(len(self._idle) + _ATTEMPTS):
            worker = self._free_worker()
            worker.steps += 1
            try:
                worker.channel.send((key, state))
            except OSError:  # it was killed while it had nothing to do
                worker.close()
                continue
            self._busy[key] = worker
            return
        raise TemplateDied("forks workers that end at once")

    def receive(self, seconds: float) -> Iterator[tuple[str, Any]]:
        """Yields what workers sent, with the key of the step, and `Died` for each that ended.

        Args:
            seconds: How long to wait for something.
        """
        if not self._busy:
            time.sleep(seconds)
            return
        self._kill_the_late()
        sources: list[Any] = [s for worker in self._busy.values() for s in (worker.channel, worker.handle)]
        ready = set(wait(sources, seconds))
        for key, worker in list(self._busy.items()):
            if worker.channel in ready:
                try:
                    yield key, worker.channel.recv()
                    continue
                except (EOFError, OSError):
                    if not worker.ends_within(_LAST_WORDS):
                        worker.kill("it closed its connection to the run, and did not end")
                        worker.ends_within(PATIENCE)
            elif worker.handle not in ready or worker.channel.poll():  # or there is more to be read first
                continue
            del self._busy[key]
            worker.close()
            yield key, _how_it_died(worker)

    def release(self, key: str) -> None:
        """Takes a step's worker as free for the next one."""
        worker = self._busy.pop(key)
        if worker.steps < STEPS_PER_WORKER:
            self._idle.append(worker)
        else:
            worker.close()

    def interrupt(self) -> None:
        """Interrupts the steps that are being executed; kills those that have not ended after some seconds.

        When called again, kills them at once, unless that is for the same cause.
        """
        now = time.monotonic()
        if self._interrupted_at is None:
            self._interrupted_at, self._deadline = now, now + PATIENCE
            for worker in self._busy.values():
                worker.send_signal(signal.SIGINT)
        elif now > self._interrupted_at + _AGAIN:
            self._deadline = now
            self._kill_the_late()

    def _kill_the_late(self) -> None:
        if time.monotonic() >= self._deadline:
            for worker in self._busy.values():
                worker.kill("it was interrupted, and did not end in time")

    def __exit__(self, *_: object) -> None:
        if self._busy:  # the run breaks off
            self.interrupt()
        workers = [*self._idle, *self._busy.values()]
        for worker in workers:
            worker.channel.close()
        deadline = time.monotonic() + PATIENCE
        for worker in workers:
            worker.ends_within(deadline - time.monotonic())
            os.close(worker.handle)
        if self._template:
            self._template.close()  # and with it who has not ended

    def _free_worker(self) -> Worker:
        return self._idle.pop() if self._idle else self._hire()

    def _hire(self) -> Worker:
        for _ in range(2):
            if self._template is None:
                self._template = Template(self._preload, self._job)
            try:
                worker = self._template.fork()
            except TemplateDied as error:
                reason = error
                self._template.close()
                self._template = None
                continue
            with suppress(OSError):  # it died at once, as whoever gives it a step will see
                worker.channel.send(self._assignment)
                for stream in STREAMS:  # where the run's process writes by now, unlike the template
                    send_handle(worker.channel, stream, worker.pid)
            return worker
        raise reason


def _how_it_died(worker: Worker) -> Died:
    try:
        return Died(worker.pid, worker.template.reap(worker.pid), killed_because=worker.killed_because)
    except TemplateDied as error:
        return Died(worker.pid, None, str(error), worker.killed_because)
