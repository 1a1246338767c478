"""Progress of a step, in its log."""

import time
from collections.abc import Callable

_SECONDS_BETWEEN = 10.0


def logged(log: Callable[[str], None]) -> Callable[[int, int | None], None]:
    """Returns a function that writes (done, total) to a log, at most once in ten seconds."""
    last = time.monotonic()

    def report(done: int, total: int | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN:
            last = now
            log(f"{done:,} of {total:,} ({done / total:.0%})" if total else f"{done:,} so far")

    return report


def counted(report: Callable[[int, int | None], None], total: int | None = None) -> Callable[[int], None]:
    """Returns a function that is told what was done since the last time, and reports the sum of it.

    Args:
        report: Told (done, total).
        total: What there is to do; None where unknown.
    """
    done = 0

    def add(more: int) -> None:
        nonlocal done
        done += more
        report(done, total)

    return add
