"""Starts a Python process that runs one of our modules, and lets none outlive its use."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import tfr_assets

_PATIENCE = 10.0  # seconds that a process has to end by itself, once its input has ended


class Process(NamedTuple):
    """A process and its pipes.

    Attributes:
        popen: The process.
        stdin: What it reads.
        stdout: What it writes.
    """

    popen: "subprocess.Popen[bytes]"
    stdin: IO[bytes]
    stdout: IO[bytes]


@contextlib.contextmanager
def fresh_process(module: str) -> Iterator[Process]:
    """Runs a module's `main` in a new Python; when the block ends, its input ends, and it is waited for.

    Not a fork, which threads and compiled code do not survive; and not `multiprocessing`, which would run the program's
    main module again. A process sees its input end when its caller is gone, for whatever reason.

    Args:
        module: Name of a module whose function `main` reads standard input to its end, and ends then.
    """
    paths = [str(Path(tfr_assets.__file__).parent.parent), *sys.path]  # what a caller can import, so can it
    popen = subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {module} import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        process_group=0,  # Ctrl-C is for the caller, who ends its processes in order
    )
    assert popen.stdin and popen.stdout
    try:
        yield Process(popen, popen.stdin, popen.stdout)
    finally:
        with contextlib.suppress(BrokenPipeError):
            popen.stdin.close()
        try:
            popen.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()


def messages() -> IO[bytes]:
    """Returns, in such a process, its standard output; what is printed goes to standard error from now on."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream
