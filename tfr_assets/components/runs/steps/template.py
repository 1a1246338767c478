"""The processes that workers are forked from. They have imported what steps need, and have no thread.

The first is started as `python -c "... main(DESCRIPTOR, PARENT)"` by `fork_server`, and told which modules to import.
It forks a template for each run, which loads the run's job and forks its workers. What either is asked, over a socket:

    ("fork", ...), a socket   fork one, which is asked, or works, over that socket  → there: ("forked", pid)
    ("reap", pid)             wait for one that ended                               → ("ended", pid, status)
"""

import ctypes
import gc
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any, NoReturn

from tfr_assets.records.kernels.compile_progress import show_as

STREAMS = (1, 2)  # standard output and standard error
_PR_SET_PDEATHSIG = 1
_SIGNALS_TO_IGNORE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the run's process decides, and tells by closing
_IDLE_SECONDS = 60.0  # without a run, after which the memory that the imports take is free again


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


@dataclass(frozen=True)
class Surroundings:
    """Where a run's process looks for what it loads, which may have changed since the first process was started.

    Attributes:
        search_path: Of modules.
        folder: The working directory; None: it was removed.
        environment: Environment variables.
    """

    search_path: Sequence[str]
    folder: str | None
    environment: Mapping[str, str]

    @classmethod
    def here(cls) -> "Surroundings":
        """Returns those of this process."""
        folder = None
        with suppress(FileNotFoundError):
            folder = os.getcwd()  # noqa: PTH109 - for os.chdir
        return cls(list(sys.path), folder, dict(os.environ))

    def take_over(self) -> None:
        """Has this process look where that one does."""
        sys.path[:] = self.search_path
        os.environ.clear()
        os.environ.update(self.environment)
        if self.folder:
            os.chdir(self.folder)


def main(descriptor: int, parent: int) -> NoReturn:
    """Serves the requests of the runs' process, `parent`, until the socket is closed or that process ends."""
    end_with(parent)
    for number in _SIGNALS_TO_IGNORE:
        signal.signal(number, signal.SIG_IGN)
    gc.disable()  # imports leave little garbage, and looking for it takes a third of their time
    warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
    show_as("line")  # the bar is the run's
    _until_closed(partial(_serve_runs, Connection(descriptor)))


def end_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Has the kernel send this process a signal when its parent ends, in the middle of whatever it does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended before that took effect
        os._exit(1)


def _serve_runs(requests: Connection) -> None:
    import_module("tfr_assets.components.runs.steps.worker")
    for module in import_module(requests.recv()).MODULES:
        with suppress(ImportError):
            import_module(module)
    _serve(requests, _serve_run, _IDLE_SECONDS)


def _serve_run(requests: Connection, surroundings: Surroundings, job: bytes) -> None:
    for stream in STREAMS:
        os.dup2(handle := recv_handle(requests), stream)
        os.close(handle)
    surroundings.take_over()
    _load(job)
    requests.send(("ready",))
    _serve(requests, _work, None)


def _work(channel: Connection) -> None:
    from tfr_assets.components.runs.steps.worker import work

    gc.enable()
    show_as("nothing")  # the template compiles the same ones at the same time
    work(channel)


def _load(pickled: bytes) -> None:
    """Loads a job once for all workers. What is wrong with it is reported by the step that needs it."""
    from tfr_assets.components.runs.steps.assignment import rehashed

    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run's process loads them, too, and says the same
        job = pickle.loads(pickled)
        if isinstance(job, Definitions):
            getattr(import_module(job.module), job.function)(job.dataset)
        else:
            rehashed(job).get_definition()


def _serve(requests: Connection, child: Callable[..., None], patience: float | None) -> None:
    """Forks processes that call `child`, and waits for their end, as it is asked to.

    Args:
        requests: Who asks.
        child: Is called with the socket that was passed, and what came with the request.
        patience: Seconds without a process and without a request, after which it returns; None: it waits for ever.
    """
    forked: set[int] = set()
    ended: dict[int, int] = {}
    while forked or requests.poll(patience):
        kind, *arguments = requests.recv()
        if kind == "fork":
            forked.add(pid := _fork(requests, recv_handle(requests), child, arguments))
            ended.pop(pid, None)
        else:
            (pid,) = arguments
            if pid in forked:  # else it is asked again, by who was interrupted
                _, status = os.waitpid(pid, 0)
                forked.remove(pid)
                ended[pid] = os.waitstatus_to_exitcode(status)
            requests.send(("ended", pid, ended[pid]))


def _fork(requests: Connection, socket: int, child: Callable[..., None], arguments: Sequence[Any]) -> int:
    parent = os.getpid()
    gc.freeze()
    _flush()
    pid = os.fork()
    if not pid:
        os.set_inheritable(socket, False)
        end_with(parent)
        requests.close()
        _until_closed(partial(child, Connection(socket), *arguments))
    with suppress(BrokenPipeError, ConnectionResetError), Connection(socket) as theirs:
        theirs.send(("forked", pid))
    return pid


def _until_closed(serve: Callable[[], None]) -> NoReturn:
    """Ends this process after `serve`, which whoever asks may end by closing the socket. Nothing is left to tidy up."""
    try:
        with suppress(EOFError, BrokenPipeError, ConnectionResetError):
            serve()
        _flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
