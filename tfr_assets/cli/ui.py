"""`make ui`: starts Dagster's UI and daemon, says where they are once they answer, and ends with them.

python -m tfr_assets.cli.ui [PORT]
"""

import ctypes
import errno
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import IO

from tfr_assets.components.runs.steps.template import end_with

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.2
_SECONDS_TO_END = 15.0  # that runs have to stop their steps after the rest is gone
_PR_SET_CHILD_SUBREAPER = 36
_SAYS = """\
The UI is at http://{host}:{port}/asset-groups: the lineage of all datasets.
Schedules and sensors run as long as this does. Ctrl-C ends it."""
_TAKEN = """\
Port {port} is in use, maybe by another `make ui`. End what uses it, or choose another port: make ui PORT={other}"""
_WARNINGS = "ignore:Parameter `execution_type`"  # about an argument that Dagster's own code passes


def main(port: int) -> int:
    """Runs `dg dev` until it ends, or until Ctrl-C, SIGTERM or SIGHUP end it.

    Args:
        port: Where the UI is to answer.

    Returns:
        The exit code: 0 if a signal ended it, 2 if the port is in use.
    """
    if _is_taken(port):
        print(_TAKEN.format(port=port, other=port + 1), file=sys.stderr)
        return 2
    dg = str(Path(sys.executable).with_name("dg"))
    # warnings of the daemon are useless here: the UI shows ticks, runs and what they say
    command = [dg, "dev", "--no-check-yaml", "--log-level", "error", "--host", _HOST, "--port", str(port)]
    environment = os.environ | {"PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS", _WARNINGS)}
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what its processes leave behind is this one's to wait for
    ended: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda signum, _: ended.append(signum))
    # in a session of its own, so that one Ctrl-C is one signal to all of it, and a second one does no harm
    until_parent_ends = partial(end_with, os.getpid(), signal.SIGINT)
    process = subprocess.Popen(
        command, env=environment, start_new_session=True, preexec_fn=until_parent_ends, stderr=subprocess.PIPE
    )
    errors = Thread(target=_pass_on, args=(process.stderr, ended), daemon=True)
    errors.start()
    says, interrupt_at = _SAYS, 0.0
    while (code := process.poll()) is None:
        if ended and time.monotonic() > interrupt_at:
            os.killpg(process.pid, signal.SIGINT)
            interrupt_at = time.monotonic() + _SECONDS_TO_END  # the first one may get lost while Python starts
        elif says and not ended and _answers(port) and process.poll() is None:
            print(says.format(host=_HOST, port=port), flush=True)
            says = ""
        time.sleep(_POLL_SECONDS)
    if not _all_gone(_SECONDS_TO_END):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _all_gone(_SECONDS_TO_END)
    errors.join(_POLL_SECONDS)
    return 0 if ended else code


def _pass_on(errors: IO[bytes], ended: list[int]) -> None:
    """Copies errors to the terminal until Ctrl-C. After it, the daemon reports parts that ended before it as errors.

    All lines are read, also when the terminal is gone: a full pipe would stop the processes that write to it.
    """
    for line in errors:
        if not ended:
            with suppress(OSError, ValueError):
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of an ended UI do not count
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _all_gone(seconds: float) -> bool:
    """Waits until no process is left, for some time; returns whether that is so."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(_POLL_SECONDS)
        except ChildProcessError:
            return True
    return False


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{_HOST}:{port}/server_info", timeout=1):
            return True
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000))
