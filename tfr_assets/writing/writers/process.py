"""Starts a Python process that runs one of our modules, with pipes for Arrow streams, and lets none outlive its use."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from typing import IO, NamedTuple

from tfr_assets.processes import end_process, start_python


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

    A process sees its input end when its caller is gone, for whatever reason.

    Args:
        module: Name of a module whose function `main` reads standard input to its end, and ends then.
    """
    popen = start_python(
        f"from {module} import main; main()",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,  # Ctrl-C is for the caller, who ends its processes in order
    )
    assert popen.stdin and popen.stdout
    try:
        yield Process(popen, popen.stdin, popen.stdout)
    finally:
        with contextlib.suppress(BrokenPipeError):
            popen.stdin.close()
        end_process(popen)


def messages() -> IO[bytes]:
    """Returns, in such a process, its standard output; what is printed goes to standard error from now on."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream
