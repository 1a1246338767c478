"""Being stopped by Ctrl-C, SIGTERM or a closed terminal: each ends a command in order, with an exit code of its own."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_pipe: int | None = None  # Python writes the number of each signal into it, whichever handler runs
_received: list[int] = []


def handle_stop_signals() -> None:
    """Makes SIGTERM and SIGHUP do what Ctrl-C does, here and where Dagster handles it; `nohup` stays in force."""
    global _pipe
    _pipe, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))  # what a child receives is its own affair
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def stop_signal() -> int | None:
    """Returns the first signal that asked this process to stop, or None."""
    with suppress(BlockingIOError):  # none came since
        while _pipe is not None and (numbers := os.read(_pipe, 64)):
            _received.extend(number for number in numbers if number in _STOPPING)
    return _received[0] if _received else None


def stop_code() -> int:
    """Returns the exit code of a command that was stopped: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
    return 128 + (stop_signal() or signal.SIGINT)


@contextmanager
def stopped_once() -> Iterator[None]:
    """Ignores every signal but the first one, so that what the block does about it is not stopped in its turn."""

    def interrupt(_: int, __: FrameType | None) -> None:
        earlier = len(_received)
        stop_signal()
        if not earlier:  # several may have come before Python could handle the first
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if stop_signal() is None:
            signal.signal(signal.SIGINT, before)
            signal.signal(signal.SIGTERM, _interrupt)  # Dagster handles both alike
        else:
            for number in _STOPPING:
                signal.signal(number, signal.SIG_IGN)


def _interrupt(_: int, frame: FrameType | None) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # Ctrl-C is ignored in the background
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)
