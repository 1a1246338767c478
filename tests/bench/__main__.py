"""Runs all benchmarks and prints one table; exits with 1 where a target is missed."""

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.measuring import Line


def _records(folder: Path) -> list[Line]:
    from tests.bench.records import measure_records

    return list(measure_records(folder))


def _dagster(folder: Path) -> list[Line]:
    from tests.bench.steps import measure_steps

    return list(measure_steps(folder))


def main() -> None:
    """Measures each part in a process of its own, one after another."""
    lines: list[Line] = []
    console = Console(stderr=True)
    for part in (_records, _dagster):
        with (
            console.status(f"measuring {part.__name__.strip('_')}"),
            tempfile.TemporaryDirectory() as folder,
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        ):
            lines += pool.submit(part, Path(folder)).result()
    table = Table(box=None, header_style="bold")
    for column in ("measured", "figure", "target", "", "detail"):
        table.add_column(column, overflow="fold")
    for line in lines:
        verdict = "" if line.met is None else "[green]met[/]" if line.met else "[red]missed[/]"
        table.add_row(line.what, line.measured, line.target, verdict, line.detail)
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(table)
    sys.exit(any(line.met is False for line in lines))


if __name__ == "__main__":
    main()
