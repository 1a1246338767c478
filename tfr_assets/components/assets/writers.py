"""The assets `writers`, how fast each way of writing the dataset is, and `writer_report`, which to use when."""

from typing import TYPE_CHECKING, Any

import dagster as dg

from tfr_assets.bench.writers.options import WriterTrials
from tfr_assets.components.assets.readers import POOL
from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import chosen_partitions, reported
from tfr_assets.components.metadata.file_metadata import markdown, rounded
from tfr_assets.components.runs.while_held import while_held
from tfr_assets.writing.dataset import Dataset

if TYPE_CHECKING:
    from tfr_assets.bench.writers.comparison import Comparison, Trial
    from tfr_assets.layout import Layout

_WRITERS = """How fast each writer turns the dataset's first rows into TFRecord files, on the dataset's disk, with one \
worker and with more, and beside a plain write of the same bytes. Measured one at a time; what is written is removed."""
_REPORT = """The writers side by side, and which to use when. It takes what was measured of the current rows, and \
tells what is missing."""


def build_writers(look: Look, options: WriterTrials) -> dg.AssetsDefinition:
    """Returns the asset `writers` of a dataset: one partition a writer."""
    dataset = look.dataset

    @dg.asset(
        **look.asset("writers", _WRITERS, {"arrow"}, group_name=look.bench_group),
        deps=[look.key("raw")],
        partitions_def=dg.StaticPartitionsDefinition(list(options.only)),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=POOL,
    )
    def writers(context: dg.AssetExecutionContext) -> None:
        for writer in chosen_partitions(context):
            with while_held(context, dataset.layout), reported(writer=writer):
                trial = measure(dataset, writer, options)
            best = trial.best
            context.log.info(f"{writer}: {best.records_per_second:,.0f} records/s with {best.workers} workers")
            context.add_asset_metadata(_trial_metadata(trial, dataset.layout), partition_key=writer)

    return writers


def measure(dataset: Dataset, writer: str, options: WriterTrials) -> "Trial":
    """Measures a writer of a dataset, and saves what was measured.

    Raises:
        TfrError: As `tfr_assets.bench.writers.comparison.try_writer`.
    """
    from tfr_assets.bench.writers.comparison import try_writer

    trial = try_writer(dataset, writer, options)
    trial.save(dataset.layout)
    return trial


def build_writer_report(look: Look, options: WriterTrials) -> dg.AssetsDefinition:
    """Returns the asset `writer_report` of a dataset."""
    dataset = look.dataset

    @dg.asset(
        **look.asset("writer_report", _REPORT, {"report"}, group_name=look.bench_group),
        deps=[dg.AssetDep(look.key("writers"), partition_mapping=dg.AllPartitionMapping())],
    )
    def writer_report(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        from tfr_assets.bench.writers.comparison import compare

        with while_held(context, dataset.layout), reported(dataset=dataset.name):
            comparison = compare(dataset, options)
            metadata = _report_metadata(comparison, dataset.layout)
        for sentence in comparison.advice():
            context.log.info(sentence)
        return dg.MaterializeResult(metadata=metadata)

    return writer_report


def _trial_metadata(trial: "Trial", layout: "Layout") -> dict[str, Any]:
    from tfr_assets.bench.writers.comparison import COLUMNS, as_row

    best = trial.best
    _, workers, *cells = zip(COLUMNS, *map(as_row, trial.measured), strict=True)  # a column each: rows are too wide
    shown = {
        "dagster/row_count": best.records,
        "dagster/size_bytes": best.bytes,
        "dagster/uri": str(layout.writers / f"{trial.writer}.json"),
        "workers": best.workers,
        "seconds": best.seconds,
        "records_per_second": best.records_per_second,
        "mb_per_second": best.mb_per_second,
        "share_of_plain_write": best.share_of_plain,
        "cpu_seconds": best.cpu_seconds,
        "peak_memory_bytes": best.peak_memory_bytes,
        "measured": dg.MetadataValue.md(markdown(workers, cells)),
    }
    return rounded(shown)


def _report_metadata(comparison: "Comparison", layout: "Layout") -> dict[str, Any]:
    """Saves the report beside what was measured, as JSON and as pictures, and returns what is shown of it."""
    from tfr_assets.bench.writers.comparison import COLUMNS, NOTE, as_document, as_row
    from tfr_assets.pictures import as_markdown
    from tfr_assets.storage.atomic import write_atomically
    from tfr_assets.storage.sealed import seal

    write_atomically(layout.writers / "report.json", seal(as_document(comparison)))
    shown: dict[str, Any] = {
        "dagster/uri": str(layout.writers / "report.json"),
        "use": dg.MetadataValue.md("\n".join(f"- {sentence}" for sentence in comparison.advice())),
        "missing": ", ".join(comparison.missing) or "none",
    }
    if comparison.trials:
        table = markdown(COLUMNS, map(as_row, comparison.measured))
        shown["table"] = dg.MetadataValue.md(f"{table}\n\n{NOTE}")
        for name, png in _pictures(comparison).items():
            write_atomically(layout.writers / f"{name}.png", png)
            shown[name] = dg.MetadataValue.md(as_markdown(png, name))
    return shown


def _pictures(comparison: "Comparison") -> dict[str, bytes]:
    """Returns a bar for each writer at its best, and its speed over the number of workers."""
    from tfr_assets.pictures import bars, curves

    best = sorted((trial.best for trial in comparison.trials), key=lambda each: each.seconds)
    plain = best[0].bytes / best[0].plain_write_seconds / 1e6
    rows = [
        (each.writer, each.mb_per_second, each.bytes / each.slowest / 1e6, each.bytes / each.fastest / 1e6)
        for each in best
    ]
    series = {
        trial.writer: [(each.workers, each.mb_per_second) for each in trial.measured] for trial in comparison.trials
    }
    return {
        "writers": bars(rows, "MB/s", "Writers, each at its best", rows[0][0], ("a plain write", plain)),
        "workers": curves(series, "workers", "MB/s", "Speed over the number of workers"),
    }
