"""What `tfr bench` does: measures on this machine, and prints a table. No run of Dagster's is needed."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape

from tfr_assets.bench.readers.measure import Measured, measure_readers
from tfr_assets.bench.readers.measurement import load
from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.bench.readers.peers import BesidePeers, measure_peers
from tfr_assets.bench.readers.recommend import recommend
from tfr_assets.bench.readers.slow_server import Storage, slow_server, with_urls
from tfr_assets.bench.readers.table import COLUMNS, NOTE, rows
from tfr_assets.cli.terminal import err, out, steps_bar, table
from tfr_assets.errors import ConfigError
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.registry import default_reader
from tfr_assets.urls import url_of

# without --only: what prefetching, taking turns and parallel reading gain where storage is slow
REMOTE_READERS = ("naive", "prefetch", "interleave", "vectorized", "autotuned")


def bench_readers(
    folder: Path, options: BenchOptions, keep: bool, storage: Storage | None, quiet: bool
) -> dict[str, Any]:
    """Measures the readers of a dataset, prints a table, and returns the same as a JSON-ready document.

    Raises:
        ConfigError: Storage is to be pretended, but the dataset lies in a store.

    Args:
        folder: The dataset's folder.
        options: What to measure.
        keep: Whether the measurements are those of the dataset: then they are saved, and so is what they recommend.
        storage: Storage to pretend the files to be on; None: measured where they are.
        quiet: Whether to print no table.
    """
    if storage and (url := url_of(folder)):
        raise ConfigError(f"{url} is far away already; leave out --latency-ms and --mb-per-s")
    files = locate(folder, "shards")
    with ExitStack() as stack:
        if storage:
            options = options if options.only else options.of(REMOTE_READERS)
            files = with_urls(files, folder, stack.enter_context(slow_server(folder, storage)))
        measured = measure_readers(files, options, stack.enter_context(steps_bar(folder.name)))
    if keep and not storage:
        _keep(measured, folder / "readers", default_reader(files))
    beside = None if storage or options.only else measure_peers(files)
    if not quiet:
        where = f" over HTTP, {storage}" if storage else ""
        out.print(table(folder.name + where, COLUMNS, rows(measured.measurements), numbers=COLUMNS[1:], apart=True))
        out.print(NOTE, style="dim")
        best = recommend(measured.measurements, default_reader(files))
        if best and not storage:
            out.print(f"[green]recommended:[/] {best.reader}, {best.why}")
        if beside:
            _print_peers(beside)
        for reader, why in measured.failures.items():
            err.print(f"[red]failed[/] {reader}: {why}", soft_wrap=True)
    return {
        "readers": {name: each.to_json() for name, each in measured.measurements.items()},
        "failures": dict(measured.failures),
        **({"peers": asdict(beside)} if beside else {}),
    }


def _print_peers(beside: BesidePeers) -> None:
    if beside.theirs:
        columns = ("other packages", "records/s", "ours beside it", "gives")
        out.print(table("", columns, beside.rows(), numbers=columns[1:3], apart=True))
    for package, why in beside.failures.items():
        err.print(f"[red]failed[/] {package}: {escape(why)}", soft_wrap=True)
    if beside.absent:
        out.print(f"not installed, and so not measured: {', '.join(beside.absent)}", style="dim")


def _keep(measured: Measured, folder: Path, default: str) -> None:
    for measurement in measured.measurements.values():
        measurement.save(folder)
    known = {reader: found for reader in BenchOptions().readers if (found := load(folder, reader))}
    if best := recommend(known, default):
        best.save(folder)
