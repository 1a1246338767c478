"""Runs all benchmarks and prints one table; exits with 1 where a target is missed."""

import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.columnar import measure_columnar
from tests.bench.measuring import Line
from tests.bench.media import measure_media
from tests.bench.peers import measure_peers
from tests.bench.readers import measure_reading
from tests.bench.records import measure_records
from tests.bench.shuffles import measure_shuffles
from tests.bench.steps import measure_steps
from tests.bench.stores import measure_stores
from tests.bench.writers import measure_writing
from tfr_assets.cli.terminal import stderr_to


def main() -> None:
    """Measures each part in a process of its own, one after another."""
    lines: list[Line] = []
    console = Console(file=os.fdopen(os.dup(2), "w"))
    with stderr_to(Path(".dagster") / "bench.log"):  # Dagster and TensorFlow are talkative
        for part in (
            measure_records,
            measure_media,
            measure_writing,
            measure_columnar,
            measure_shuffles,
            measure_peers,
            measure_reading,
            measure_stores,
            measure_steps,
        ):
            with (
                console.status(part.__name__.replace("_", " ")),
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
