"""A dataset's writers side by side: each measured with the dataset's own first rows, kept on the disk, and compared.

Every writer is measured, and kept, by itself. A comparison takes what there is of the same rows, and tells what is
missing.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tfr_assets.errors import SourceError
from tfr_assets.layout import Layout
from tfr_assets.records.files import write_atomically
from tfr_assets.sources import Inventory, read_rows
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import load_inventory
from tfr_assets.writing.writers.measure import Contestant, WriterMeasurement, measure_writers
from tfr_assets.writing.writers.registry import Writer
from tfr_assets.writing.writers.trials import SEED

_ROWS, _BYTES = 200_000, 100_000_000  # of which a writer is measured in about a minute, the seeds' code included
_DISK_IS_THE_LIMIT = 0.9  # of the speed of a plain write
_GAIN = 1.2  # times as fast: what counts as faster


@dataclass(frozen=True)
class Trial:
    """What was measured of one writer.

    Attributes:
        writer: Its name.
        rows: Number of rows that the dataset had.
        fingerprint: The inventory's, of which the rows were, and what was made of them.
        measured: One for each number of workers, in ascending order. Its `records` are the rows that were written.
    """

    writer: str
    rows: int
    fingerprint: str
    measured: tuple[WriterMeasurement, ...]

    @property
    def best(self) -> WriterMeasurement:
        """The fastest."""
        return max(self.measured, key=lambda each: each.records_per_second)

    def save(self, layout: Layout) -> Path:
        """Writes the trial beside the dataset's others, atomically, and returns its file.

        Raises:
            WriteError: The file system refused.
        """
        path = layout.writers / f"{self.writer}.json"
        write_atomically(path, (json.dumps(asdict(self), indent=1) + "\n").encode())
        return path

    @classmethod
    def load(cls, layout: Layout, writer: str) -> "Trial | None":
        """Returns a writer's saved trial; None where there is none, or one of another version of this program."""
        try:
            saved = json.loads((layout.writers / f"{writer}.json").read_text())
            return cls(**{**saved, "measured": tuple(WriterMeasurement(**each) for each in saved["measured"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None


def try_writer(dataset: Dataset, writer: str | Writer) -> Trial:
    """Measures a writer with the dataset's first rows, on the dataset's disk.

    Args:
        dataset: Its `trials` say how.
        writer: A name of `registry.WRITERS`, or such a function, which can be imported.

    Raises:
        StaleError: Raw must be materialized first, or again.
        SourceError: There is no row.
        TfrError: As `write`.
    """
    inventory = load_inventory(dataset)
    if not inventory.rows:
        raise SourceError(f"dataset {dataset.name!r} has no rows, so that there is nothing to measure")
    name = writer if isinstance(writer, str) else writer.__name__
    trials = dataset.trials
    files = trials.counts[-1] if name.startswith("sharded") else None
    contestants = [
        Contestant(writer, workers, files, dataset.compression, dataset.features) for workers in trials.workers_of(name)
    ]
    rows = _first_rows(inventory, min(inventory.rows, trials.rows or _ROWS), trials.rows is None)
    measured = measure_writers(contestants, rows, trials.repeats, dataset.layout.folder)
    return Trial(name, inventory.rows, _fingerprint(dataset, inventory), tuple(measured))


def _first_rows(inventory: Inventory, rows: int, bounded: bool) -> Iterator[pa.RecordBatch]:
    size = 0
    for batch in read_rows(inventory, 0, rows):
        yield batch
        size += batch.nbytes
        if bounded and size >= _BYTES:
            return


def _fingerprint(dataset: Dataset, inventory: Inventory) -> str:
    settings = [dataset.compression, asdict(dataset.features), dataset.trials.rows]
    return f"{inventory.fingerprint} {json.dumps(settings, sort_keys=True, default=str)}"


@dataclass(frozen=True)
class Comparison:
    """Writers that were measured with the same rows.

    Attributes:
        trials: In the order in which the dataset names them.
        missing: Names of those that were not measured, or with other rows or settings.
    """

    trials: tuple[Trial, ...]
    missing: tuple[str, ...]

    @property
    def measured(self) -> list[WriterMeasurement]:
        """All measurements."""
        return [each for trial in self.trials for each in trial.measured]

    def advice(self) -> list[str]:
        """Returns which writer to use when, as the figures say, in plain words: a sentence or two each."""
        return list(_advice(self))


def compare(dataset: Dataset) -> Comparison:
    """Returns what there is of a dataset's current rows and settings.

    Raises:
        StaleError: Raw must be materialized first, or again.
    """
    current = _fingerprint(dataset, load_inventory(dataset))
    found = {name: Trial.load(dataset.layout, name) for name in dataset.trials.only}
    trials = tuple(trial for trial in found.values() if trial and trial.fingerprint == current)
    there = {trial.writer for trial in trials}
    return Comparison(trials, tuple(name for name in found if name not in there))


COLUMNS = (
    "writer", "workers", "files", "records/s", "MB/s", "ms", "of a plain write", "CPU s", "peak memory",
)  # fmt: skip


def as_row(found: WriterMeasurement) -> tuple[str, ...]:
    """Returns the cells of a table with `COLUMNS`."""
    return (
        found.writer,
        str(found.workers),
        str(found.shards or 1),
        f"{found.records_per_second:,.0f}",
        f"{found.mb_per_second:,.0f}",
        f"{found.seconds * 1e3:,.0f} ({found.fastest * 1e3:,.0f} – {found.slowest * 1e3:,.0f})",
        f"{found.share_of_plain:.0%}",
        f"{found.cpu_seconds:.2f}",
        f"{found.peak_memory_bytes / 1e6:,.0f} MB",
    )


def as_document(comparison: Comparison) -> dict[str, Any]:
    """Returns a comparison as JSON-ready values."""
    return {
        "measured": [
            {
                **asdict(each),
                "records_per_second": each.records_per_second,
                "mb_per_second": each.mb_per_second,
                "share_of_plain": each.share_of_plain,
            }
            for each in comparison.measured
        ],
        "missing": list(comparison.missing),
        "advice": comparison.advice(),
    }


def _advice(comparison: Comparison) -> Iterator[str]:
    by_name = {trial.writer: trial.best for trial in comparison.trials}
    if by_name:
        first = comparison.trials[0]
        written = first.best.records
        yield f"Measured with {'all' if written == first.rows else f'the first {written:,} of'} {first.rows:,} rows."
        best = max(by_name.values(), key=lambda each: each.records_per_second)
        yield from _fastest(best, list(by_name.values()))
        yield _limit(best, comparison)
        yield from _among("several files", by_name, ("sharded_threads", "sharded_processes"))
        yield from _among("one file", by_name, ("single_writer_queue", "serial", "locked"))
        if SEED in by_name and best.writer != SEED:
            times = best.records_per_second / by_name[SEED].records_per_second
            yield f"The code of most tutorials, `{SEED}`: {_speed(by_name[SEED])}; the fastest is {times:.0f} times so."
    if comparison.missing:
        yield f"Not measured, or with other rows or settings: {', '.join(comparison.missing)}."


def _fastest(best: WriterMeasurement, others: Sequence[WriterMeasurement]) -> Iterator[str]:
    workers = f"{best.workers} worker" + "s" * (best.workers > 1)
    yield f"Fastest: `{best.writer}` with {workers}, {_speed(best)}."
    close = [f"`{each.writer}`" for each in others if each is not best and each.fastest < best.slowest]
    if close:
        yield f"As fast as far as the spread tells: {', '.join(close)}."


def _limit(best: WriterMeasurement, comparison: Comparison) -> str:
    plain = f"a plain write of the same bytes takes {best.plain_write_seconds / best.seconds:.0%} of its time"
    if best.share_of_plain >= _DISK_IS_THE_LIMIT:
        return f"The disk is the limit: {plain}. Neither more workers nor another writer help."
    measured = next(trial.measured for trial in comparison.trials if trial.writer == best.writer)
    gain = measured[0].seconds / measured[-1].seconds
    if len(measured) == 1:
        return f"The disk is not the limit: {plain}."
    workers = f"{measured[-1].workers} workers are {gain:.1f} × as fast as {measured[0].workers}"
    if gain >= _GAIN:
        return f"The disk is not the limit, the processors are: {plain}, and {workers}."
    return f"The disk is not the limit: {plain}. But more workers gain little: {workers}."


def _among(what: str, by_name: dict[str, WriterMeasurement], names: Sequence[str]) -> Iterator[str]:
    """Says which of some writers to use; the one named first, unless another is clearly faster."""
    there = [by_name[name] for name in names if name in by_name]
    if len(there) < 2:
        return
    chosen = there[0]
    for other in there[1:]:
        if chosen.seconds > _GAIN * other.seconds and other.slowest < chosen.fastest:
            chosen = other
    others = [
        f"`{each.writer}` reaches {each.records_per_second / chosen.records_per_second:.0%} of it"
        for each in there
        if each is not chosen
    ]
    warning = ", which mixes the order of records" if chosen.writer == "locked" else ""
    yield f"For {what}: `{chosen.writer}`{warning}. {'; '.join(others)}."


def _speed(found: WriterMeasurement) -> str:
    return f"{found.records_per_second:,.0f} records/s ({found.mb_per_second:,.0f} MB/s)"
