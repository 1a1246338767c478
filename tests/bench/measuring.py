"""How the benchmarks measure: alternately, several times, medians with their spread."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One line of the report.

    Attributes:
        what: What was measured.
        measured: The figure, with its unit.
        target: What was asked for; empty where nothing was.
        met: Whether it is met; None without a target.
        detail: How the figure came about.
    """

    what: str
    measured: str
    target: str = ""
    met: bool | None = None
    detail: str = ""


def alternate(contestants: Mapping[str, Callable[[], object]], repeats: int = 7) -> dict[str, list[float]]:
    """Runs all contestants in turn, so that a slow moment of the machine hits all of them; returns seconds of each.

    The first round warms caches and does not count. A contestant that returns a float has taken the time itself.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for round_ in range(repeats + 1):
        for name, run in contestants.items():
            started = time.perf_counter()
            took = run()
            if round_:
                seconds[name].append(took if isinstance(took, float) else time.perf_counter() - started)
    return seconds


def spread(seconds: list[float]) -> str:
    """Returns the median in ms and the range around it."""
    return f"{statistics.median(seconds) * 1e3:.1f} ms ({min(seconds) * 1e3:.1f} – {max(seconds) * 1e3:.1f})"


def ratio(above: list[float], below: list[float]) -> float:
    """Returns how many times longer `above` took: the median over the rounds of each round's ratio."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))
