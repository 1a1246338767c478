"""`make ui` from its first moment on: a port that is taken, and whoever stops or kills it early."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, kill_all
from tests.waiting import wait_for

Start = Callable[[], "subprocess.Popen[str]"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path, env={"DAGSTER_DISABLE_TELEMETRY": "1"})


@pytest.fixture
def start(terminal: Terminal) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def do() -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tfr_assets.cli.ui", str(free_port())]
        started.append(
            subprocess.Popen(
                command,
                env=terminal.environment(),
                cwd=terminal.root,
                stdout=subprocess.PIPE,
                stderr=(terminal.root / "ui.log").open("w"),
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield do
    for pid in working_in(terminal.root):
        os.kill(pid, signal.SIGKILL)
    for process in started:
        kill_all(process)


def working_in(folder: Path) -> list[int]:
    """Returns the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").resolve() == folder.resolve() and (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def test_a_port_that_is_taken_is_named_with_a_remedy(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "-m", "tfr_assets.cli.ui", str(port)]
        done = subprocess.run(
            command, env=terminal.environment(), cwd=terminal.root, capture_output=True, text=True, timeout=120
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Port {port} is in use" in done.stderr and f"make ui PORT={port + 1}" in done.stderr


def test_an_early_ctrl_c_leaves_no_process(terminal: Terminal, start: Start) -> None:
    process = start()
    wait_for(lambda: len(working_in(terminal.root)) > 1, 120)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "")
    assert working_in(terminal.root) == []


def test_nothing_outlives_its_killing(terminal: Terminal, start: Start) -> None:
    process = start()
    assert process.stdout
    assert "The UI is at" in process.stdout.readline(), (terminal.root / "ui.log").read_text()
    process.kill()
    process.wait()
    wait_for(lambda: working_in(terminal.root) == [], 120, lambda: str(working_in(terminal.root)))
