"""Processes of our own: how they are started, how they end, and what is said of that.

What they are sent differs, and is their room's: Python objects to readers, Arrow streams to writers, forks to runs.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

_PATIENCE = 10.0  # seconds that a process has to end by itself


def start_python(statement: str, **settings: Any) -> "subprocess.Popen[bytes]":
    """Runs a statement in a new Python, which can import what this one can.

    Not a fork, which threads and compiled code do not survive; and not `multiprocessing`, which would run the program's
    main module again.

    Args:
        statement: What it runs.
        settings: Of `subprocess.Popen`.
    """
    paths = [str(Path(__file__).parent.parent), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.Popen([sys.executable, "-P", "-c", statement], env=environment, **settings)


def end_process(process: "subprocess.Popen[Any]", patience: float = _PATIENCE) -> None:
    """Waits for a process that was asked to end, and kills it if it does not.

    Args:
        process: The process.
        patience: Seconds to wait.
    """
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def how_it_ended(code: int) -> str:
    """Returns what an exit code says: `was killed by signal 9 (SIGKILL)`, `ended with exit code 3`."""
    if code >= 0:
        return f"ended with exit code {code}"
    names = {number.value: f" ({number.name})" for number in signal.Signals}
    return f"was killed by signal {-code}{names.get(-code, '')}"
