"""Fresh processes, one after another, each as if newly started, in no time.

Importing TensorFlow takes seconds. A process that has imported it forks another for every task, and that one has done
nothing yet: no thread, no session, no memory but the imports. This is multiprocessing's forkserver, except that it is
one's own (within a step of Dagster's, the only forkserver is Dagster's), is watched from outside, and leaves no
process behind.
"""

import os
import signal
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import IO, Any

from tfr_assets.bench.process.usage import Watch
from tfr_assets.processes import how_it_ended, start_python

_SECONDS_BETWEEN_LOOKS = 0.02  # a look takes 0.2 ms
_MESSAGES_SHOWN = 20


class ProcessFailed(RuntimeError):
    """A process ended without an answer, killed or crashed, or had an error other than the user's; the text says it."""


class FreshProcesses:
    """Runs functions in processes of their own, one at a time. Made by `fresh_processes`."""

    def __init__(self, connection: Connection, messages: IO[bytes]) -> None:
        self._connection = connection
        self._messages = messages

    def run(self, place: str, *arguments: Any) -> tuple[Any, Watch]:
        """Runs a function in a fresh process; returns what it returned, and what the process used.

        Args:
            place: `module:function`. The module is imported there only.
            arguments: Of the function; they and the result can be pickled.

        Raises:
            TfrError: The function raised it.
            ProcessFailed: The process was killed or crashed, or the function raised anything else.
        """
        self._connection.send((place, arguments))
        watch = Watch(self._expect("started"))
        watch.look()
        while not self._connection.poll(_SECONDS_BETWEEN_LOOKS):
            watch.look()
        return self._expect("returned"), watch

    def _expect(self, expected: str) -> Any:
        try:
            kind, value = self._connection.recv()
        except (EOFError, ConnectionResetError) as error:
            raise ProcessFailed(f"the process that measures ended at once.{self._last_messages()}") from error
        if kind == "raised":
            raise value
        if kind == "failed":
            raise ProcessFailed(value)
        if kind == "died":
            raise ProcessFailed(
                f"the measuring process {how_it_ended(value)}, without an answer.{self._last_messages()}"
            )
        assert kind == expected, kind
        return value

    def _last_messages(self) -> str:
        """Returns the end of what was written to standard error, which is not shown otherwise."""
        self._messages.seek(0)
        said = self._messages.read().decode(errors="replace").splitlines()[-_MESSAGES_SHOWN:]
        return "\n".join([" It said:", *said]) if said else ""


@contextmanager
def fresh_processes(modules: Sequence[str]) -> Iterator[FreshProcesses]:
    """Yields what runs functions in fresh processes, and leaves no process behind, whatever happens.

    Args:
        modules: What the processes have imported before.

    Raises:
        ProcessFailed: A module cannot be imported.
    """
    ours, theirs = socket.socketpair()
    arguments = [str(theirs.fileno()), *modules]
    statement = f"from tfr_assets.bench.process.forked import main; main({arguments!r})"
    with tempfile.TemporaryFile() as messages, Connection(ours.detach()) as connection:
        with theirs:
            nursery = start_python(statement, pass_fds=[theirs.fileno()], stderr=messages, start_new_session=True)
        try:
            processes = FreshProcesses(connection, messages)
            processes._expect("ready")
            yield processes
        finally:
            with suppress(ProcessLookupError):
                os.killpg(nursery.pid, signal.SIGKILL)
            nursery.wait()
