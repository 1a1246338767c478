"""The process that workers are forked from: it has imported what steps need, and has no thread.

Started as `python -c "... main(DESCRIPTOR, PARENT)"` by `crew`, which sends requests, with the sockets of workers:

    ("prepare", preload, job)  import what steps need, and load the job  → ("ready",)
    ("fork",)                  fork a worker                             → ("forked", pid)
    ("reap", pid)              wait for one that ended                   → ("ended", status)
"""

import ctypes
import gc
import os
import signal
import sys
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any, NoReturn

from tfr_assets.records.kernels.compile_progress import show_as

_PR_SET_PDEATHSIG = 1
_SIGNALS_TO_IGNORE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the run's process decides, and tells by closing


@dataclass(frozen=True)
class Definitions:
    """Definitions as a command knows them before it has imported Dagster.

    Attributes:
        module: The module of a function that loads them, and keeps what it loaded.
        function: Its name.
        dataset: What it is called with.
    """

    module: str
    function: str
    dataset: str


def main(descriptor: int, parent: int) -> NoReturn:
    """Serves the requests of the run's process, `parent`, until the socket is closed or that process ends."""
    end_with(parent)
    for number in _SIGNALS_TO_IGNORE:
        signal.signal(number, signal.SIG_IGN)
    gc.disable()  # imports leave little garbage, and looking for it takes a third of their time
    warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
    show_as("line")  # the bar is the run's
    try:
        _serve(Connection(descriptor))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def end_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Has the kernel send this process a signal when its parent ends, in the middle of whatever it does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended before that took effect
        os._exit(1)


def _serve(requests: Connection) -> None:
    _, preload, job = requests.recv()
    import_module("tfr_assets.components.runs.steps.worker")
    _load(job)
    for module in import_module(preload).MODULES:
        with suppress(ImportError):
            import_module(module)
    requests.send(("ready",))
    while True:
        kind, *arguments = requests.recv()
        if kind == "fork":
            requests.send(("forked", _fork(requests, recv_handle(requests))))
        else:
            _, status = os.waitpid(arguments[0], 0)
            requests.send(("ended", os.waitstatus_to_exitcode(status)))


def _load(job: Any) -> None:
    """Loads a job once for all workers. What is wrong with it is reported by the step that needs it."""
    from tfr_assets.components.runs.steps.assignment import rehashed

    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run's process loads them, too, and says the same
        if isinstance(job, Definitions):
            getattr(import_module(job.module), job.function)(job.dataset)
        else:
            rehashed(job).get_definition()


def _fork(requests: Connection, socket: int) -> int:
    from tfr_assets.components.runs.steps.worker import work

    template = os.getpid()
    gc.freeze()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    pid = os.fork()
    if pid:
        os.close(socket)
        return pid
    os.set_inheritable(socket, False)
    gc.enable()
    show_as("nothing")  # the template compiles the same ones at the same time
    try:
        end_with(template)
        requests.close()
        work(Connection(socket))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # nothing is left to tidy up, which takes a while
