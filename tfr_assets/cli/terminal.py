"""What people see in a terminal: tables on standard output, progress on standard error."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from tfr_assets.urls import is_object_url

_WIDE = 200  # columns where there is no terminal: what goes into a file or a pipe is not folded

out = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
err = Console(stderr=True, highlight=False)


def visible(text: str) -> str:
    """Returns text with what is not printable escaped: a terminal obeys control characters of any origin."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    numbers: Sequence[str] = (),
    apart: bool = False,
) -> Group:
    """Returns a table of plain text, brackets and all; the columns named in `numbers` are aligned to the right."""
    made = Table(header_style="bold", pad_edge=False, box=None)
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(visible(cell)) for cell in row))
    before = [Text("")] if apart else []
    return Group(*before, Text(visible(title), "bold"), made) if title else Group(*before, made)


@contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """Sends what this process and its children write to standard error into a file; `err` still reaches the terminal.

    Dagster, its steps and TensorFlow's native code all write there, and would tear the progress bar apart.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    terminal = os.dup(2)
    before = err.file
    with log.open("ab") as target, os.fdopen(os.dup(terminal), "w") as screen:
        os.dup2(target.fileno(), 2)
        err.file = screen
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            err.file = before


@contextmanager
def steps_bar(label: str) -> Iterator[Callable[[str, int, int], None]]:
    """Shows a bar of steps; yields a function that is called with what is being done, steps done, and steps in all."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[doing]}", markup=False),
    )
    with Progress(*columns, console=err) as bar:
        task = bar.add_task(label, total=None, doing="starting")
        yield lambda doing, done, total: bar.update(task, completed=done, total=total, doing=doing)


@contextmanager
def bytes_bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Shows a bar of bytes; yields a function that is called with bytes just done."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda more: bar.advance(task, more)


@contextmanager
def records_bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Shows a bar of records; yields a function that is called with records just done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda more: bar.advance(task, more)


def common_folder(paths: Sequence[str]) -> str:
    """Returns the deepest folder that holds all the files, so that a table need not repeat it; nothing if none does."""
    urls = [path.rpartition("/")[0] for path in paths if is_object_url(path)]
    if not urls:
        return os.path.commonpath([str(Path(path).absolute().parent) for path in paths])
    return os.path.commonpath(urls).replace(":/", "://", 1) if len(urls) == len(paths) else ""


def below(path: str, folder: str) -> str:
    """Returns a path as seen from a folder that holds it."""
    whole = path if is_object_url(path) else str(Path(path).absolute())
    return whole.removeprefix(folder).lstrip("/") if folder else whole
