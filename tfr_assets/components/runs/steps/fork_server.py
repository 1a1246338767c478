"""The processes that `template` describes, as the run's process sees them. Nothing here knows Dagster."""

import atexit
import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.reduction import send_handle
from typing import Any

from tfr_assets.components.runs.steps.template import STREAMS, Surroundings
from tfr_assets.processes import how_it_ended

PATIENCE = 10.0  # seconds that a process has to end
_START = """
import sys
sys.path[:] = {path!r}
from tfr_assets.components.runs.steps.template import main
main({descriptor}, {parent})
"""
_kept = threading.local()  # the server of a thread, with which the kernel ends it


class TemplateDied(Exception):
    """The process that workers are forked from ended, and with it all workers; says how."""


class _Forker:
    """A process that forks others."""

    def __init__(self, requests: Connection) -> None:
        self._requests = requests

    def ask_for(self, socket: Connection, *what: Any) -> None:
        """Asks for a process that has the other end of `socket`, over which it says its number as soon as it is there.

        Raises:
            TemplateDied: This one ended.
        """
        try:
            self._requests.send(("fork", *what))
            self.pass_on(socket.fileno())
        except OSError as error:
            raise self.died() from error

    def pass_on(self, descriptor: int) -> None:
        """Gives it an open file."""
        send_handle(self._requests, descriptor, 0)  # the number of the process is for Windows

    def reap(self, pid: int) -> int:
        """Waits for a process that it forked, and that ended; returns its exit code.

        Raises:
            TemplateDied: This one ended.
        """
        try:
            self._requests.send(("reap", pid))
        except OSError as error:
            raise self.died() from error
        while (message := self.receive())[:2] != ("ended", pid):  # an interrupted call may have left an answer
            pass
        return int(message[2])

    def receive(self) -> Any:
        """Waits for what it says next.

        Raises:
            TemplateDied: It ended.
        """
        try:
            return self._requests.recv()
        except (EOFError, OSError) as error:
            raise self.died() from error

    def died(self) -> TemplateDied:
        """Returns how it ended."""
        raise NotImplementedError


class _Server(_Forker):
    """The process that has imported what steps need; of it, the template of each run is forked."""

    def __init__(self, preload: str) -> None:
        requests, theirs = Pipe()
        super().__init__(requests)
        self.preload = preload
        self.templates = 0  # that are open
        self._owner = os.getpid()
        code = _START.format(path=sys.path, descriptor=theirs.fileno(), parent=self._owner)
        with theirs:
            # in a process group of its own: Ctrl-C is for the run's process, which tells the workers, once
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], pass_fds=[theirs.fileno()], process_group=0, stdin=subprocess.DEVNULL
            )
        with suppress(OSError):  # it died at once, as whoever asks it will see
            requests.send(preload)

    @classmethod
    def kept(cls, preload: str) -> "_Server":
        """Returns the server of this thread, which one of the runs before may have started."""
        server: _Server | None = getattr(_kept, "server", None)
        if server and server.preload == preload and server._is_alive:
            return server
        _kept.server = cls(preload)
        return _kept.server

    @property
    def _is_alive(self) -> bool:
        """Whether it was started by this process, not by one that this is a fork of, and has not ended."""
        return self._owner == os.getpid() and self._process.poll() is None

    def died(self) -> TemplateDied:
        """See `_Forker`."""
        try:
            return TemplateDied(how_it_ended(self._process.wait(PATIENCE)))
        except subprocess.TimeoutExpired:
            return TemplateDied("closed its connection")

    def close(self) -> None:
        """Ends it, and with it all templates and workers; it has nothing to tidy up, and may be busy importing."""
        if self._owner == os.getpid():
            self._requests.close()
            self._process.kill()
            self._process.wait()


@atexit.register
def close_server() -> None:
    """Ends the server of this thread, if there is one. The next run starts another."""
    if server := getattr(_kept, "server", None):
        del _kept.server
        server.close()


class Template(_Forker):
    """The process that has loaded the job of a run; of it, the run's workers are forked."""

    def __init__(self, preload: str, job: Any) -> None:
        """Asks for it, and does not wait until it is there.

        Args:
            preload: The module that names what workers have imported.
            job: What it loads: a reconstructable job, or `Definitions`.
        """
        requests, theirs = Pipe()
        super().__init__(requests)
        self._server = _Server.kept(preload)
        self._is_ready = False
        self._pid, self._handle = 0, -1
        self._death: TemplateDied | None = None
        self._server.templates += 1
        with theirs, suppress(TemplateDied, OSError):  # if it dies at once, `fork` says so, and how
            try:
                self._server.ask_for(theirs, Surroundings.here(), pickle.dumps(job))
                for stream in STREAMS:
                    self.pass_on(stream)
            except BaseException:  # interrupted: it would wait for what was not sent
                self._server.close()
                raise

    def ready_within(self, seconds: float) -> bool:
        """Waits until it has loaded everything; returns whether `fork` will answer at once, or raise."""
        with suppress(TemplateDied):
            while not (self._is_ready or self._death) and self._requests.poll(seconds):
                self.receive()
        return self._is_ready or self._death is not None

    def fork(self) -> "Worker":
        """Returns a new worker.

        Raises:
            TemplateDied: It ended.
        """
        channel, theirs = Pipe()
        with theirs:
            self.ask_for(theirs)
        try:
            _, pid = channel.recv()
            return Worker(self, pid, channel, os.pidfd_open(pid))
        except (EOFError, OSError) as error:  # only the template's end makes a worker vanish unasked
            raise self.died() from error

    def receive(self) -> Any:
        """See `_Forker`."""
        return self._note(super().receive())

    def died(self) -> TemplateDied:
        """See `_Forker`."""
        if not self._death:
            self._death = self._find_out()
        return self._death

    def close(self) -> None:
        """Ends it, and with it all workers."""
        self._look_for_number()
        self._requests.close()
        self._server.templates -= 1
        if self._handle < 0:  # the server is still importing, or ended; a template ends when it looks for requests
            if not self._server.templates:
                self._server.close()
            return
        if not self._death:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            self.died()
        os.close(self._handle)

    def _note(self, message: Any) -> Any:
        kind, *more = message
        if kind == "forked":
            (self._pid,) = more
            with suppress(ProcessLookupError):  # the server ended, and with it this one
                self._handle = os.pidfd_open(self._pid)
        self._is_ready = self._is_ready or kind == "ready"
        return message

    def _look_for_number(self) -> None:
        with suppress(EOFError, OSError):
            while not self._pid and self._requests.poll():
                self._note(self._requests.recv())

    def _find_out(self) -> TemplateDied:
        self._look_for_number()
        if self._handle < 0:
            return self._server.died()
        if not wait([self._handle], PATIENCE):
            return TemplateDied("closed its connection")
        try:
            return TemplateDied(how_it_ended(self._server.reap(self._pid)))
        except TemplateDied as of_server:
            return of_server


@dataclass
class Worker:
    """A worker process.

    Attributes:
        template: What it was forked from.
        pid: Its process.
        channel: Takes steps and gives events.
        handle: Becomes readable when the process ends, whoever holds the other end of the channel.
        steps: How many it was given.
        killed_because: Why it was killed here, if it was.
    """

    template: Template
    pid: int
    channel: Connection
    handle: int
    steps: int = 0
    killed_because: str = ""

    def ends_within(self, seconds: float) -> bool:
        """Waits for the end of the process; returns whether it has ended."""
        return bool(wait([self.handle], max(0.0, seconds)))

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal, if the process is still there."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)

    def kill(self, reason: str) -> None:
        """Kills the process, and notes the reason."""
        self.killed_because = self.killed_because or reason
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Lets it end as soon as it has no step."""
        self.channel.close()
        os.close(self.handle)
