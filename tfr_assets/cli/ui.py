"""`make ui`: starts Dagster's UI and daemon, says where they are once they answer, and ends with them.

python -m tfr_assets.cli.ui [PORT]
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.2
_SECONDS_TO_END = 15.0  # that runs have to stop their steps after the rest is gone
_PR_SET_CHILD_SUBREAPER = 36
_SAYS = """\
The UI is at http://{host}:{port}/asset-groups: the lineage of all datasets.
Schedules and sensors run as long as this does. Ctrl-C ends it."""
_WARNINGS = "ignore:Parameter `execution_type`"  # about an argument that Dagster's own code passes


def main(port: int) -> int:
    """Runs `dg dev` until it ends, or until Ctrl-C, SIGTERM or SIGHUP end it.

    Args:
        port: Where the UI is to answer.

    Returns:
        The exit code: 0 if a signal ended it.
    """
    dg = str(Path(sys.executable).with_name("dg"))
    # warnings of the daemon are of no use here: the UI shows ticks, runs and what they say
    command = [dg, "dev", "--no-check-yaml", "--log-level", "error", "--host", _HOST, "--port", str(port)]
    environment = os.environ | {"PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS", _WARNINGS)}
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what its processes leave behind is this one's to wait for
    # in a session of its own, so that one Ctrl-C is one signal to all of it, and a second one does no harm
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    ended: list[int] = []

    def end(signum: int, frame: object) -> None:
        if not ended:
            os.killpg(process.pid, signal.SIGINT)
        ended.append(signum)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    while process.poll() is None and not ended:
        if _answers(port):
            print(_SAYS.format(host=_HOST, port=port), flush=True)
            break
        time.sleep(_POLL_SECONDS)
    code = process.wait()
    if not _all_gone(_SECONDS_TO_END):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _all_gone(_SECONDS_TO_END)
    return 0 if ended else code


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
        with urllib.request.urlopen(f"http://{_HOST}:{port}/server_info", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000))
