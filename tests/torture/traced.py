"""Runs a function in a process of its own whose system calls `strace` records, makes fail, or answers with a signal.

The process is forked from one that has imported everything, so that nothing but the function's own calls is traced.
"""

import ctypes
import multiprocessing
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.torture.scenarios"])
_SET_PTRACER, _ANY = 0x59616D61, -1
_PATIENCE = 120  # seconds that the slowest machine may need


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        exit_code: Its exit code; negative: the signal that killed it.
        error: The exception that the function raised, if any, as its class and text.
        trace: What strace wrote.
    """

    exit_code: int
    error: tuple[type[BaseException], str] | None
    trace: list[str]


def run_forked(function: Callable[..., Any], *arguments: Any) -> Ended:
    """Calls an importable function in a process of its own."""
    return _run(function, arguments, None, Path("/dev/null"))


def run_killed(seconds: float, function: Callable[..., Any], *arguments: Any) -> Ended:
    """Calls a function in a process of its own that is killed after some time."""
    return _run(function, arguments, None, Path("/dev/null"), seconds)


def run_traced(function: Callable[..., Any], *arguments: Any, strace: Sequence[str], output: Path) -> Ended:
    """Calls a function in a process of its own that is traced.

    Args:
        function: What to call; importable.
        arguments: Its arguments.
        strace: Options of strace.
        output: Where strace shall write.
    """
    command = ["strace", "-f", "-xx", "-s", "100000000", "-o", str(output), *strace]
    return _run(function, arguments, command, output)


def _run(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    strace: Sequence[str] | None,
    output: Path,
    killed_after: float | None = None,
) -> Ended:
    here, there = _FORKS.Pipe()
    process = _FORKS.Process(target=_call, args=(there, function, arguments))
    process.start()
    there.close()
    tracer = None
    try:
        here.recv()  # it is ready
        if strace:
            tracer = subprocess.Popen([*strace, "-p", str(process.pid)], stderr=subprocess.PIPE, text=True)
            assert tracer.stderr
            attached = tracer.stderr.readline()
            assert "attached" in attached, attached
        here.send("go")
        if killed_after is not None:
            process.join(killed_after)
            process.kill()
        try:
            error = here.recv() if here.poll(_PATIENCE) else None
        except EOFError:
            error = None  # it was killed
        process.join(_PATIENCE)
        if tracer:
            tracer.wait(_PATIENCE)
        return Ended(process.exitcode if process.exitcode is not None else -999, error, output.read_text().splitlines())
    finally:
        here.close()
        if process.is_alive():
            process.kill()
        if tracer:
            tracer.kill()
            tracer.communicate()


def _call(pipe: Connection, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    ctypes.CDLL(None).prctl(_SET_PTRACER, _ANY, 0, 0, 0)
    pipe.send("ready")
    pipe.recv()
    try:
        function(*arguments)
    except BaseException as error:
        pipe.send((type(error), str(error)))
        raise SystemExit(1) from None
    pipe.send(None)


@cache
def _reason_against() -> str | None:
    if not shutil.which("strace"):
        return "strace is not installed"
    done = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"strace cannot trace here: {done.stderr.strip()[:200]}"


def need_strace() -> None:
    """Skips the test where nothing can be traced."""
    if reason := _reason_against():
        pytest.skip(reason)
