"""Waiting for what threads and processes do in their own time: as long as a busy machine may need, and no longer."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], seconds: float = 60, told: Callable[[], str] = lambda: "") -> None:
    """Returns as soon as a condition holds.

    Args:
        condition: is asked every 20 ms, and may raise to end the waiting.
        seconds: that the slowest machine may need.
        told: what to say when they are over.

    Raises:
        AssertionError: it does not hold in time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {seconds:g} s {told()}".rstrip())
        time.sleep(0.02)
