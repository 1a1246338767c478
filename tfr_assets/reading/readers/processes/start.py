"""Processes of our own that end when this one does, however that happens.

Each holds one end of a socket pair and serves whoever holds the other. When that end is closed, because all is
read, training was interrupted or this process was killed, the process ends. Locks and queues of
`multiprocessing` would not do: a process that is killed while holding them blocks all others for ever.
"""

import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import Any, Self

from tfr_assets.processes import end_process, how_it_ended, start_python

_PATIENCE = 5  # seconds to end by itself
_START = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starting process is interrupted, too, and closes the connection
from importlib import import_module
from multiprocessing.connection import Connection
getattr(import_module({module!r}), {function!r})(Connection({descriptor}), *{arguments!r})
os._exit(0)  # there is nothing to tidy up, which takes a while
"""


@dataclass(frozen=True)
class Process:
    """A running process and the connection to it.

    Attributes:
        connection: Takes and gives Python objects. Both directions are bounded: who sends too much waits.
        process: The process.
    """

    connection: Connection
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, module: str, function: str, *arguments: Any) -> Self:
        """Calls a function of a module in a fresh Python with the connection and some plain values."""
        ours, theirs = Pipe()
        with theirs:
            code = _START.format(module=module, function=function, descriptor=theirs.fileno(), arguments=arguments)
            process = start_python(code, pass_fds=[theirs.fileno()])
        return cls(ours, process)

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def describe_end(self) -> str:
        """Waits for a process that closed its end, and returns how it ended, for a message."""
        return f"process {self.process.pid} {how_it_ended(self.process.wait(_PATIENCE))}"


def close_all(processes: Iterable[Process]) -> None:
    """Closes the connections, and kills those processes that this does not end soon."""
    all_of_them = list(processes)
    for each in all_of_them:
        each.connection.close()
    deadline = time.monotonic() + _PATIENCE
    for each in all_of_them:
        end_process(each.process, max(0, deadline - time.monotonic()))
