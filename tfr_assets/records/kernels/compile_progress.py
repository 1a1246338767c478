"""Shows that kernels are compiled, which takes up to a minute, once: by a bar in a terminal, elsewhere by one line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # it is imported only where a terminal has to wait
    from rich.progress import Progress

LINE = "tfr_assets: compiling kernels, once; this takes up to a minute"
_CLEAR = "\r\x1b[2K"  # the line of a terminal, on which another process may have drawn a bar

_bar: "Progress | None" = None
_done = 0  # kernels of this process that were loaded or compiled
_way: Literal["bar", "line", "nothing"] = "bar"


def show_as(way: Literal["bar", "line", "nothing"]) -> None:
    """Sets how this process shows it, and processes forked from it: not by a bar where another one draws its own."""
    global _way
    _way = way


def show_compiling(kernel: str, kernels: int) -> None:
    """Shows that a kernel is compiled now; where nothing can move, it is said of the first one only.

    Args:
        kernel: Its name.
        kernels: Number of all kernels.
    """
    if sys.stderr is None or _way == "nothing":
        return
    if not sys.stderr.isatty():
        print(LINE, file=sys.stderr, flush=True)
        show_as("nothing")
    elif _way == "line":
        print(_CLEAR + LINE, file=sys.stderr, flush=True)
        show_as("nothing")
    else:
        _start_bar(kernel, kernels)


@contextmanager
def compiling() -> Iterator[None]:
    """Counts a kernel, and wipes away the bar when it is done."""
    global _bar, _done
    try:
        yield
    finally:
        _done += 1
        if _bar:
            _bar.stop()
            _bar = None


def _start_bar(kernel: str, kernels: int) -> None:
    global _bar
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("compiling kernels, once"), BarColumn(), MofNCompleteColumn(), TextColumn(kernel))
    _bar = Progress(*columns, console=Console(stderr=True), transient=True)
    _bar.add_task("", completed=_done, total=max(kernels, _done + 1))
    _bar.start()
