"""The asset `readers`: how fast each way of reading the dataset is, one partition a reader."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import chosen_partitions, reported
from tfr_assets.components.metadata.file_metadata import rounded
from tfr_assets.components.metadata.progress import logged
from tfr_assets.components.runs.while_held import while_held
from tfr_assets.reading.registry import READERS

if TYPE_CHECKING:
    from tfr_assets.bench.readers.measurement import Measurement

POOL = "tfr_readers"  # dagster.yaml lets one step of a pool run at a time: two at once would measure each other

_DESCRIPTION = """How fast each reader feeds a training loop with this dataset.

Every reader gets fresh processes, in turn with the others when several are measured in one run. A first pass finds the
files out of the page cache, later ones in it; plain reading of the same bytes is the limit. All records are counted."""


def build_readers(look: Look, options: BenchOptions) -> dg.AssetsDefinition:
    """Returns the asset `readers` of a dataset."""
    dataset = look.dataset

    @dg.asset(
        **look.asset("readers", _DESCRIPTION, {"tensorflow"}, group_name=look.bench_group),
        deps=[
            dg.AssetDep(look.key("shards"), partition_mapping=dg.AllPartitionMapping()),
            look.key("merged"),  # what one of the readers reads
        ],
        partitions_def=dg.StaticPartitionsDefinition(list(options.readers)),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=POOL,
    )
    def readers(context: dg.AssetExecutionContext) -> None:
        from tfr_assets.bench.readers.measure import measure_readers
        from tfr_assets.reading.locate.files import locate

        chosen = chosen_partitions(context)
        report_progress = logged(context.log.info)
        with while_held(context, dataset.layout), reported(dataset=dataset.name):
            files = locate(dataset.layout.folder, "shards")
            measured = measure_readers(files, options.of(chosen), lambda _, done, steps: report_progress(done, steps))
            for measurement in measured.measurements.values():
                measurement.save(dataset.layout.readers)
        metadata = {reader: _metadata(each, dataset.layout.readers) for reader, each in measured.measurements.items()}
        for reader, each in measured.measurements.items():
            context.log.info(f"{reader}: {each.warm.median:,.0f} records/s, {each.cold.median:,.0f} cold")
        if measured.failures:  # what was measured stays
            for reader, shown in metadata.items():
                context.log_event(dg.AssetMaterialization(look.key("readers"), partition=reader, metadata=shown))
            failed = "\n".join(f"{reader}: {why}" for reader, why in measured.failures.items())
            raise dg.Failure(f"{len(measured.failures)} of {len(chosen)} readers failed\n{failed}", allow_retries=False)
        for reader, shown in metadata.items():
            context.add_asset_metadata(shown, partition_key=reader)

    return readers


def _metadata(measured: "Measurement", folder: Path) -> dict[str, Any]:
    shown = {
        "dagster/row_count": measured.records,
        "dagster/size_bytes": measured.bytes,
        "dagster/uri": str(folder / f"{measured.reader}.json"),
        "what": READERS[measured.reader].description,
        "seconds": measured.seconds,
        "records_per_second": measured.warm.median,
        "records_per_second_low": measured.warm.low,
        "records_per_second_high": measured.warm.high,
        "records_per_second_cold": measured.cold.median,
        "mb_per_second": measured.mb_per_second,
        "share_of_limit": measured.share_of_limit,
        "share_of_limit_cold": measured.share_of_limit_cold,
        "first_batch_seconds": measured.first_batch_warm,
        "first_batch_seconds_cold": measured.first_batch_cold,
        "cpu_seconds": measured.cpu_seconds,
        "busy_cores": measured.busy_cores,
        "peak_memory_bytes": measured.peak_memory_bytes,
        "open_descriptors": measured.descriptors,
        "repeats": measured.repeats,
        "batch_size": measured.batch_size,
        "hardware": str(measured.hardware),
    }
    return rounded(shown)
