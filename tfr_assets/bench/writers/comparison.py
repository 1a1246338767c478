"""A dataset's writers side by side: each measured with the dataset's own first rows, kept on the disk, and compared.

Every writer is measured, and kept, by itself. A comparison takes what there is of the same rows, and says what is
missing.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tfr_assets.bench.writers.measure import Contestant, measure_writers
from tfr_assets.bench.writers.measured import MEASURED, SEED
from tfr_assets.bench.writers.measurement import WriterMeasurement
from tfr_assets.bench.writers.options import WriterTrials
from tfr_assets.errors import SourceError
from tfr_assets.layout import Layout
from tfr_assets.sources import Inventory, read_rows
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.sealed import seal, unseal
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import load_inventory
from tfr_assets.writing.writers.registry import DEFAULT_FOR_ONE_FILE, DEFAULT_FOR_SHARDS

_ROWS, _BYTES = 200_000, 100_000_000  # of which a writer is measured in about a minute, the seeds' code included
_DISK_IS_THE_LIMIT = 0.9  # of the speed of a plain write that the disk begins with early
_GAIN = 1.2  # times as fast: what counts as faster
_LEAST_SECONDS = 0.02  # of a write: of a shorter one, little but making files is measured


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
        write_atomically(path, seal(asdict(self)))
        return path

    @classmethod
    def load(cls, layout: Layout, writer: str) -> "Trial | None":
        """Returns a writer's saved trial; None where there is none, a damaged one, or one of another version."""
        try:
            saved = unseal((layout.writers / f"{writer}.json").read_bytes()) or {}
            return cls(**{**saved, "measured": tuple(map(WriterMeasurement.from_json, saved["measured"]))})
        except (OSError, ValueError, TypeError, KeyError):
            return None


def try_writer(dataset: Dataset, writer: str, options: WriterTrials) -> Trial:
    """Measures a writer with the dataset's first rows, on the dataset's disk.

    Args:
        dataset: The dataset.
        writer: A name of `MEASURED`.
        options: How it is measured.

    Raises:
        StaleError: Raw must be materialized first, or again.
        SourceError: There is no row.
        TfrError: As `write`.
    """
    inventory = load_inventory(dataset)
    if not inventory.rows:
        raise SourceError(f"dataset {dataset.name!r} has no rows, so that there is nothing to measure")
    files = options.counts[-1] if MEASURED[writer].suits == "several files" else None
    contestants = [
        Contestant(writer, workers, files, dataset.compression, dataset.features)
        for workers in options.workers_of(writer)
    ]
    rows = _first_rows(inventory, min(inventory.rows, options.rows or _ROWS), options.rows is None)
    measured = measure_writers(contestants, rows, options.repeats, dataset.layout.folder)
    return Trial(writer, inventory.rows, _fingerprint(dataset, inventory, options), tuple(measured))


def _first_rows(inventory: Inventory, rows: int, bounded: bool) -> Iterator[pa.RecordBatch]:
    size = 0
    for batch in read_rows(inventory, 0, rows):
        yield batch
        size += batch.nbytes
        if bounded and size >= _BYTES:
            return


def _fingerprint(dataset: Dataset, inventory: Inventory, options: WriterTrials) -> str:
    settings = [dataset.compression, asdict(dataset.features), options.rows]
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


def compare(dataset: Dataset, options: WriterTrials) -> Comparison:
    """Returns what there is of a dataset's current rows and settings.

    Args:
        dataset: The dataset.
        options: Which writers there should be, and how they are measured.

    Raises:
        StaleError: Raw must be materialized first, or again.
    """
    current = _fingerprint(dataset, load_inventory(dataset), options)
    found = {name: Trial.load(dataset.layout, name) for name in options.only}
    trials = tuple(trial for trial in found.values() if trial and trial.fingerprint == current)
    there = {trial.writer for trial in trials}
    return Comparison(trials, tuple(name for name in found if name not in there))


COLUMNS = (
    "writer", "workers", "files", "records/s", "MB/s", "ms", "of a plain write", "CPU s", "peak memory",
)  # fmt: skip
NOTE = (
    "records/s, MB/s: of the bytes that TFRecord files have, until they are on the disk and have their names. "
    "ms: median (fastest – slowest). of a plain write: its speed, against one thread that writes the same bytes from "
    "memory into as many files, in the same turn. CPU s: of all threads and processes. peak memory: of the first "
    "write, whose rows came as a stream, what is imported included."
)


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
                "seconds": each.seconds,
                "plain_write_seconds": each.plain_write_seconds,
                "records_per_second": each.records_per_second,
                "mb_per_second": each.mb_per_second,
                "share_of_plain": each.share_of_plain,
                "share_of_early": each.share_of_early,
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
        yield from _of_little(best) if best.seconds < _LEAST_SECONDS else _of_enough(best, by_name, comparison)
        if SEED in by_name and _clearly_faster(best, by_name[SEED]):
            times = best.records_per_second / by_name[SEED].records_per_second
            yield f"The code of most tutorials, `{SEED}`: {_speed(by_name[SEED])}; the fastest is {times:.0f} times so."
    if comparison.missing:
        yield f"Not measured, or with other rows or settings: {', '.join(comparison.missing)}."


def _of_little(best: WriterMeasurement) -> Iterator[str]:
    yield (
        f"The fastest, `{best.writer}`, takes {best.seconds * 1e3:.1f} ms: too little to tell writers apart. Use the "
        f"defaults, `{DEFAULT_FOR_SHARDS}` for several files and `{DEFAULT_FOR_ONE_FILE}` for one."
    )


def _of_enough(best: WriterMeasurement, by_name: dict[str, WriterMeasurement], comparison: Comparison) -> Iterator[str]:
    yield from _fastest(best, list(by_name.values()))
    yield _limit(best, comparison)
    yield from _among("several files", DEFAULT_FOR_SHARDS, by_name)
    yield from _among("one file", DEFAULT_FOR_ONE_FILE, by_name)


def _fastest(best: WriterMeasurement, others: Sequence[WriterMeasurement]) -> Iterator[str]:
    workers = f"{best.workers} worker" + "s" * (best.workers > 1)
    yield f"Fastest: `{best.writer}` with {workers}, {_speed(best)}."
    close = [f"`{each.writer}`" for each in others if each is not best and not _apart(best, each)]
    if close:
        yield f"As fast as far as the spread tells: {', '.join(close)}."


def _limit(best: WriterMeasurement, comparison: Comparison) -> str:
    plain = (
        f"a plain write of the same bytes takes {best.share_of_plain:.0%} of its time, or {best.share_of_early:.0%} "
        "with the disk beginning as early as here"
    )
    if best.share_of_early >= _DISK_IS_THE_LIMIT:
        return f"The disk is the limit: {plain}. More workers or another writer do not help."
    measured = next(trial.measured for trial in comparison.trials if trial.writer == best.writer)
    few, many = measured[0], measured[-1]
    if few is many:
        return f"The disk is not the limit: {plain}."
    if not _apart(few, many):
        return f"The disk is not the limit: {plain}. {few.workers} or {many.workers} workers is too close to tell."
    workers = f"{many.workers} workers are {many.speed_against(few):.1f} × as fast as {few.workers}"
    if many.speed_against(few) >= _GAIN:
        return f"The disk is not the limit, the processors are: {plain}, and {workers}."
    return f"The disk is not the limit: {plain}. But more workers gain little: {workers}."


def _among(what: str, default: str, by_name: dict[str, WriterMeasurement]) -> Iterator[str]:
    """Says which of the writers for one file, or several, to use; the default, unless another is clearly faster."""
    names = sorted((each for each in MEASURED if each != SEED), key=lambda name: name != default)
    there = [by_name[name] for name in names if name in by_name and MEASURED[name].suits == what]
    if len(there) < 2:
        return
    chosen = there[0]
    for other in there[1:]:
        if _clearly_faster(other, chosen):
            chosen = other
    others = "; ".join(_beside(each, chosen) for each in there if each is not chosen)
    warning = ", which mixes the order of records" if not MEASURED[chosen.writer].keeps_order else ""
    yield f"For {what}: `{chosen.writer}`{warning}. {others}."


def _beside(other: WriterMeasurement, chosen: WriterMeasurement) -> str:
    if not _apart(other, chosen):
        return f"`{other.writer}` is too close to tell"
    return f"`{other.writer}` reaches {other.records_per_second / chosen.records_per_second:.0%} of it"


def _apart(one: WriterMeasurement, other: WriterMeasurement) -> bool:
    """Whether all times of one are shorter than all of the other."""
    return one.slowest < other.fastest or other.slowest < one.fastest


def _clearly_faster(one: WriterMeasurement, other: WriterMeasurement) -> bool:
    return other.seconds > _GAIN * one.seconds and _apart(one, other)


def _speed(found: WriterMeasurement) -> str:
    return f"{found.records_per_second:,.0f} records/s ({found.mb_per_second:,.0f} MB/s)"
