"""The asset `readers`: how fast each way of reading the dataset is, one partition a reader."""

import dagster as dg

from tfr_assets.components.failures import chosen_partitions, reported
from tfr_assets.components.look import Look

POOL = "tfr_readers"  # dagster.yaml lets one step of a pool run at a time: two at once would measure each other
READERS = ("vectorized",)  # as in reading.pipelines, which cannot be asked here because it imports TensorFlow

_DESCRIPTION = """How fast each reader feeds a training loop with this dataset, measured one at a time."""


def build_readers(look: Look) -> dg.AssetsDefinition:
    """Returns the asset `readers` of a dataset."""
    dataset = look.dataset

    @dg.asset(
        **look.asset("readers", _DESCRIPTION, {"tensorflow"}),
        deps=[dg.AssetDep(look.key("shards"), partition_mapping=dg.AllPartitionMapping())],
        partitions_def=dg.StaticPartitionsDefinition(list(READERS)),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=POOL,
    )
    def readers(context: dg.AssetExecutionContext) -> None:
        from tfr_assets.reading.measure import measure_reader

        for reader in chosen_partitions(context):
            with reported(reader=reader):
                measured = measure_reader(dataset.name, reader, root=dataset.root)
                measured.save(dataset.layout)
            context.log.info(f"{reader}: {measured.records_per_second:,.0f} records/s")
            context.add_asset_metadata(
                {
                    "dagster/row_count": measured.records,
                    "dagster/size_bytes": measured.bytes,
                    "seconds": measured.seconds,
                    "records_per_second": measured.records_per_second,
                    "mb_per_second": measured.mb_per_second,
                    "first_batch_seconds": measured.first_batch_seconds,
                    "cpu_seconds": measured.cpu_seconds,
                    "peak_memory_bytes": measured.peak_memory_bytes,
                },
                partition_key=reader,
            )

    return readers
