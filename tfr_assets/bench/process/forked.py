"""The process that fresh processes are forked from: it has imported what they need, and has done nothing else.

Started by `fresh_processes`. It leads a session of its own, and ends with all that was forked from it when its socket
is closed: when its caller is done, or dead.
"""

import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from multiprocessing.connection import Connection, wait

from tfr_assets.errors import TfrError


def serve(requests: Connection) -> None:
    """Forks a process for each request, a pickled ("module:function", arguments), and passes on its answer.

    Answers are (kind, value): `started` with the process's id, then `returned` with what the function returned,
    `raised` with a user's error, `failed` with the trace of any other, or `died` with the exit status.
    """
    while True:
        try:
            task = requests.recv_bytes()
        except EOFError:
            return
        answers, answering = _pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            requests.close()
            answers.close()
            _work(task, answering)
        answering.close()
        requests.send(("started", pid))
        if requests in wait([answers, requests]):
            return  # the caller does not wait for the answer any more
        answer = _receive(answers)
        answers.close()
        status = os.waitpid(pid, 0)[1]
        requests.send_bytes(answer or pickle.dumps(("died", os.waitstatus_to_exitcode(status))))


def _pipe() -> tuple[Connection, Connection]:
    reading, writing = os.pipe()
    return Connection(reading, writable=False), Connection(writing, readable=False)


def _work(task: bytes, answering: Connection) -> None:
    """Runs a task in the forked process, and ends it."""
    try:
        place, arguments = pickle.loads(task)
        module, _, name = place.partition(":")
        answer = pickle.dumps(("returned", getattr(import_module(module), name)(*arguments)))
    except TfrError as error:
        answer = pickle.dumps(("raised", error))
    except BaseException as error:
        told = "".join(traceback.format_exception(error))
        answer = pickle.dumps(("failed", f"{type(error).__name__}: {error}\n\n{told}"))
    answering.send_bytes(answer)
    os._exit(0)  # threads of TensorFlow's, and what was forked with the process, do not matter any more


def _receive(answers: Connection) -> bytes:
    try:
        return answers.recv_bytes()
    except EOFError:
        return b""


def main(arguments: Sequence[str]) -> None:
    """Imports, serves, and ends all processes that it forked."""
    descriptor, *modules = arguments
    warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
    requests = Connection(int(descriptor))
    for module in modules:
        import_module(module)
    requests.send(("ready", os.getpid()))
    try:
        serve(requests)
    finally:
        os.killpg(0, signal.SIGKILL)
