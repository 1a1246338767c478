"""The asset `shards`: one partition a file, one executor step a file, one run for all of them.

    raw → plan ─┬→ write_shard[train_00000_of_00016] ─┬→ commit → the asset
                ├→ write_shard[train_00001_of_00016] ─┤
                └→ …                                  ┘

A step takes one shard, or with `shards_per_step` several, one after the other: where a step is a pod, that costs less.

`write_shard` records each partition as materialized and checked at once, so that one failing shard does not take the
others' record with it; `commit` records nothing more, and only gives the output that the asset's checks and `merged`
wait for.

Where raw data comes in slices, a partition is a slice, with all its files, and a run makes one of them. With
`shards: auto`, a partition is a split: how many files it has is known only once `raw` has run, and may change with
every run, while the partitions that the UI knows stay those of the definitions that it has loaded. There `commit`
records the partitions.

When the process of a run was killed, Dagster's re-execution "from failure" may hand `commit` a part of the shards only
and would then mark all of them as materialized. So `commit` counts.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION

from tfr_assets.components.assets.file_checks import Assigned, evaluate_shards
from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import chosen_partitions, reported
from tfr_assets.components.metadata.file_metadata import file_metadata, markdown
from tfr_assets.components.metadata.progress import counted, logged
from tfr_assets.components.metadata.report import report_failure
from tfr_assets.components.runs.between_steps import KEY, between_steps
from tfr_assets.components.runs.while_held import while_held
from tfr_assets.layout import Layout, Shard
from tfr_assets.units import megabytes
from tfr_assets.urls import place_of
from tfr_assets.writing.dataset import Dataset

if TYPE_CHECKING:
    from tfr_assets.writing.plan import ShardingPlan
    from tfr_assets.writing.shard import ShardWritten

_DESCRIPTION = """TFRecord files, one a partition, written in parallel.

A file appears under its name when it is whole. One that matches its manifest, input and settings is left as it is.

Partitions that follow each other are one run; of others, Dagster makes a run for each piece, one after the other.

The check `current` warns when YAML or raw data are no longer what the files were made from. The job `Verify_NAME` \
checks files again; the button "Execute" cannot check partitions."""
_DESCRIPTION_OF_SLICES = """TFRecord files, written in parallel; a partition has those of a slice.

A file appears under its name when it is whole. One that matches its manifest, input and settings is left as it is.

Each slice is a run of its own, so that one which fails leaves the others alone and can be launched again.

The check `current` warns when YAML or raw data are no longer what the files were made from. The job `Verify_NAME` \
checks files again; the button "Execute" cannot check partitions."""
_RECORDED = {SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True}  # what tells Dagster that the events are there already
_OF_ONE_FILE = {"path", "fingerprint", "skipped", "seconds", "records_per_second", "bytes_per_record"}


def build_shards(whole: Look) -> dg.AssetsDefinition:
    """Returns the asset `shards` of a dataset."""

    @dg.op(
        name=f"{whole.dataset.name}_plan",
        ins={"raw": dg.In(dg.Nothing)},
        out={"plan": dg.Out(io_manager_key=KEY), "shard": dg.DynamicOut(io_manager_key=KEY)},
        description="Assigns rows to shards and derives the feature spec; what cannot be encoded fails here.",
    )
    def plan(context: dg.OpExecutionContext) -> Iterator[Any]:
        from tfr_assets.records.schema.casts import lossy_casts
        from tfr_assets.writing.plan import plan_shards
        from tfr_assets.writing.shard import describes
        from tfr_assets.writing.slices.fits import settle_features

        partitions = chosen_partitions(context)
        look = whole.in_run(context.run)
        with (
            while_held(context, look.dataset.layout),
            report_failure(look, context, "the plan"),
            reported(dataset=look.dataset.title),
        ):
            look.dataset.catch_up()
            planned = plan_shards(look.current)
            if look.partition:
                settle_features(planned.dataset, planned.features)
        if not describes(look.dataset.layout.shards, planned.features):  # otherwise an earlier run has warned of them
            for warning in lossy_casts(planned.features):
                context.log.warning(warning)
        keys = [key for partition in partitions for key in look.files(partition)]
        context.log.info(
            f"{look.dataset.title}: {sum(shard.rows for shard in planned.shards):,} records of "
            f"{len(planned.features.features)} features in {len(planned.shards):,} shards, of which this run takes "
            f"{len(keys):,}"
        )
        yield dg.Output(planned, "plan")
        size = look.dataset.shards_per_step
        for group in (keys[first : first + size] for first in range(0, len(keys), size)):
            # a step gets its own shards only: the whole plan in every one would grow with the square of their number
            alone = replace(planned, shards=tuple(map(planned.shard, group)))
            yield dg.DynamicOutput(alone, mapping_key=_step_name(group), output_name="shard")

    @dg.graph_asset(
        **whole.asset("shards", _described(whole), {"tensorflow"}, code_version=whole.shards_version),
        ins={"raw": dg.AssetIn(whole.key("raw"), dagster_type=dg.Nothing)},
        partitions_def=whole.partitions,
        backfill_policy=whole.backfills(),
        automation_condition=whole.follows,
        resource_defs=between_steps(whole.dataset.project),
    )
    def shards(raw: Any) -> Any:
        planned, each = plan(raw)
        return commit(planned, each.map(write_shard).collect())

    return shards


def _step_name(keys: Sequence[str]) -> str:
    more = f"_and_{len(keys) - 1}_more" if len(keys) > 1 else ""
    return keys[0].replace("-", "_") + more


@dg.op(out=dg.Out(io_manager_key=KEY), description="Writes shards, or finds that they are there already.")
def write_shard(context: dg.OpExecutionContext, plan: Any) -> Iterator[Any]:
    """Writes the shards of a plan, records their partitions as materialized, and evaluates their checks.

    One that fails does not keep the others from being written. Where a partition has several files, records and checks
    are left to the steps that have all of them.

    Yields:
        The evaluations; of each shard the key, what became of it, and what is shown of it.

    Raises:
        dg.Failure: Shards could not be written, or are not what they must be; the message says which and why.
    """
    done: list[tuple[str, ShardWritten, dict[str, Any]]] = []
    failed: dict[str, dg.Failure] = {}
    for shard in plan.shards:
        try:
            done.append((yield from _write(context, plan, shard)))
        except dg.Failure as failure:
            if len(plan.shards) == 1:
                raise
            failed[shard.key] = failure
    if failed:
        says = "\n".join(f"{key}: {failure.description}" for key, failure in failed.items())
        raise dg.Failure(f"{len(failed)} of {len(plan.shards)} shards of this step failed\n{says}", allow_retries=False)
    yield dg.Output(done)


def _write(
    context: dg.OpExecutionContext, plan: "ShardingPlan", shard: Shard
) -> Generator[Any, None, "tuple[str, ShardWritten, dict[str, Any]]"]:
    from tfr_assets.writing.plan import load_inventory
    from tfr_assets.writing.shard import write_shard

    look = _look(context, plan.dataset)
    with while_held(context, look.dataset.layout), report_failure(look, context, shard.key):
        with reported(shard=shard.key):
            written = write_shard(plan, shard, counted(logged(context.log.info), shard.rows))
            inventory = load_inventory(plan.dataset)
            metadata = _metadata(written, inventory.rows, look.dataset.layout)
        context.log.info(_story(shard.key, written))
        if look.by_file:
            context.log_event(
                dg.AssetMaterialization(
                    look.key("shards"), partition=shard.key, metadata=metadata, tags=_provenance(plan)
                )
            )
            assigned = Assigned({shard.key: shard.rows}, inventory.splits, inventory.skipped)
            yield from evaluate_shards(look, [shard.key], context, assigned)
    return shard.key, written, metadata


@dg.op(out=dg.Out(dg.Nothing), description="Makes sure that every shard of the run was written.")
def commit(context: dg.AssetExecutionContext, plan: Any, steps: list[Any]) -> Iterator[Any]:
    """Ends the asset's part of the run, unless a shard was not handed over; records partitions of several files.

    Args:
        context: The context of the step.
        plan: The whole plan.
        steps: What each step wrote: keys of shards, what became of them, and what is shown of them.

    Yields:
        The asset's output.

    Raises:
        dg.Failure: Shards are missing; the message names them.
    """
    from tfr_assets.writing.shard import finish_shards, still_there

    layout = plan.dataset.layout  # where a step was executed elsewhere, paths may be others
    written = [shard for step in steps for shard in step]
    done = {key: replace(shard, path=layout.shard_path(key)) for key, shard, _ in written}
    look = _look(context, plan.dataset)
    with while_held(context, layout), report_failure(look, context, "shards"):
        with reported(dataset=plan.dataset.title):
            plan.dataset.catch_up()
        files = {partition: look.files(partition) for partition in context.partition_keys}
        # what a run handed over may be gone or replaced by the time it is re-executed from failure
        if changed := [key for key, shard in done.items() if not still_there(shard)]:
            raise dg.Failure(
                f"{', '.join(changed[:20])}: no longer on the disk as this run left them. Launch all steps again",
                allow_retries=False,
            )
        wanted = [key for of_partition in files.values() for key in of_partition]
        if missing := [key for key in wanted if key not in done]:
            raise dg.Failure(_not_handed_over(missing, len(wanted)), allow_retries=False)
        with reported(dataset=plan.dataset.title):
            if reason := finish_shards(plan):
                context.log.info(f"tfds.builder_from_directory cannot load the shards: {reason}")
        context.log.info(_sum(list(done.values())))
    if look.by_file:
        yield dg.Output(None, metadata=_RECORDED)
        return
    shown = {key: metadata for key, _, metadata in written}
    for partition, keys in files.items():
        context.add_asset_metadata(_together([shown[key] for key in keys]), partition_key=partition)
    yield dg.MaterializeResult(data_version=dg.DataVersion(_data_version(plan)))


def _look(context: dg.OpExecutionContext | dg.AssetExecutionContext, dataset: Dataset) -> Look:
    """Returns how a plan's dataset appears, with the description that the asset was defined with."""
    described = context.job_def.asset_layer.get(Look(dataset).key("shards")).description or ""
    return Look(dataset, described.removesuffix(_described(Look(dataset))).strip())


def _described(look: Look) -> str:
    text = _DESCRIPTION if look.slices is None else _DESCRIPTION_OF_SLICES
    return text.replace("NAME", look.dataset.name)


def _metadata(shard: "ShardWritten", rows: int, layout: Layout) -> dict[str, Any]:
    shown = file_metadata(shard.manifest, shard.path, shard.seconds if shard.written else None)
    counts = {"dagster/row_count": rows, "dagster/partition_row_count": shard.manifest.records}
    report = dg.MetadataValue.path(place_of(layout.report))
    return shown | counts | {"peak_memory_bytes": shard.peak_memory_bytes, "report": report}


def _together(files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns what is shown of a partition: of its one file, or of the first one, with the sums of all."""
    first = files[0]
    if len(files) == 1:
        return first
    size, records = (
        sum(file[name] for file in files) for name in ("dagster/size_bytes", "dagster/partition_row_count")
    )
    lines = [
        (
            Path(file["dagster/uri"]).name,
            f"{file['dagster/partition_row_count']:,}",
            megabytes(file["dagster/size_bytes"]),
        )
        for file in files
    ]
    return {
        **{name: value for name, value in first.items() if name not in _OF_ONE_FILE},
        "dagster/partition_row_count": records,
        "dagster/size_bytes": size,
        "dagster/uri": first["dagster/uri"].rpartition(".")[0] + ".tfrecord-*",
        "files": len(files),
        "written": any(file["written"] for file in files),
        "shards": dg.MetadataValue.md(markdown(["file", "records", "size"], lines)),
    }


def _story(key: str, shard: "ShardWritten") -> str:
    if not shard.written:
        return f"{key}: skipped, {place_of(shard.path)} matches its manifest, input and settings"
    size, rate = megabytes(shard.manifest.bytes), shard.manifest.bytes / 1e6 / max(shard.seconds, 1e-9)
    return f"{key}: wrote {shard.manifest.records:,} records, {size}, in {shard.seconds:.2f} s ({rate:,.1f} MB/s)"


def _sum(shards: Sequence["ShardWritten"]) -> str:
    records, size = (sum(getattr(shard.manifest, name) for shard in shards) for name in ("records", "bytes"))
    written = sum(shard.written for shard in shards)
    return (
        f"{len(shards):,} shards, {records:,} records, {megabytes(size)}: {written:,} written, "
        f"{len(shards) - written:,} were there already"
    )


def _data_version(plan: "ShardingPlan") -> str:
    """Returns the version of all shards made from one inventory by the same settings.

    It is one for all, and known before they are written.
    """
    return f"{plan.inventory_fingerprint[:16]}-{Look(plan.dataset).shards_version}"


def _provenance(plan: "ShardingPlan") -> dict[str, str]:
    """Returns the tags with which Dagster itself marks an output, so that staleness is known of each shard at once."""
    look = Look(plan.dataset)
    raw = look.key("raw").to_user_string()
    return {
        "dagster/data_version": _data_version(plan),
        "dagster/data_version_is_user_provided": "true",
        "dagster/code_version": look.shards_version,
        f"dagster/input_data_version/{raw}": plan.inventory_fingerprint,
        f"dagster/input_event_pointer/{raw}": "NULL",
    }


def _not_handed_over(missing: list[str], total: int) -> str:
    named = ", ".join(missing[:20]) + (", …" if len(missing) > 20 else "")
    return (
        f"{len(missing)} of {total} shards were not handed over: {named}. This happens when a killed run is "
        "re-executed from failure. Launch all steps again: what is there already is not written a second time"
    )
