"""The checks of `readers`, by reader: what was measured, compared with what must be and with what was before."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import dagster as dg

from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.components.assets.evaluation import evaluations
from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import chosen_partitions
from tfr_assets.records.frames.verdicts import Check, Verdict

if TYPE_CHECKING:
    from tfr_assets.bench.readers.measurement import Measurement

ALL_RECORDS = Check("all_records", "Every record came, once a pass.")
OPEN_FILES = Check("open_files", "No more descriptors were open than the reader promises.")
SPEED = Check("speed", "Not clearly slower than before on this machine, with equal data and settings.", blocking=False)
READER_CHECKS = (ALL_RECORDS, OPEN_FILES, SPEED)


def build_reader_checks(look: Look, options: BenchOptions) -> dg.AssetChecksDefinition:
    """Returns the checks of the asset `readers`, evaluated for every reader of a run."""
    key = look.key("readers")
    partitions = dg.StaticPartitionsDefinition(list(options.readers))
    specs = [
        dg.AssetCheckSpec(
            check.name, asset=key, description=check.description, blocking=check.blocking, partitions_def=partitions
        )
        for check in READER_CHECKS
    ]

    @dg.multi_asset_check(
        name=f"{look.dataset.name}_check_readers", specs=specs, description="Looks at the measurements."
    )
    def check_readers(context: dg.AssetCheckExecutionContext) -> Iterator[Any]:
        from tfr_assets.bench.readers.measurement import load, load_before

        folder = look.dataset.layout.readers
        for reader in chosen_partitions(context):
            verdicts = list(judge_reader(reader, load(folder, reader), load_before(folder, reader)))
            for verdict in verdicts:
                if not verdict.passed:
                    context.log.warning(f"{verdict.check.name} of {reader}: {verdict.says}")
            yield from evaluations(verdicts, key, reader, context.instance)
        yield from (dg.Output(None, spec.get_python_identifier()) for spec in specs)

    return check_readers


def judge_reader(reader: str, latest: "Measurement | None", before: "Measurement | None") -> Iterator[Verdict]:
    """Judges a measurement.

    Args:
        reader: Name of the reader.
        latest: What was measured; None if nothing was.
        before: What was measured before that; None if nothing was.
    """
    if latest is None:
        yield from (Verdict(check, False, f"There is no measurement of {reader}") for check in READER_CHECKS)
        return
    counts = {"records_read": latest.records_read, "records": latest.records}
    says = f"{latest.records_read:,} records came, the manifests say {latest.records:,}"
    all_came = f"All {latest.records:,} records came, once a pass"
    yield Verdict(ALL_RECORDS, latest.complete, all_came if latest.complete else says, counts)
    ceiling = latest.descriptor_ceiling
    says = f"{latest.descriptors} descriptors were open at most; the ceiling is {ceiling}"
    shown = {"open_descriptors": latest.descriptors, "ceiling": ceiling}
    yield Verdict(OPEN_FILES, latest.descriptors <= ceiling, says, shown)
    yield _judge_speed(latest, before)


def _judge_speed(latest: "Measurement", before: "Measurement | None") -> Verdict:
    now = f"{latest.warm.median:,.0f} records/s"
    if before is None:
        return Verdict(SPEED, True, f"{now}; it was not measured before")
    if not latest.comparable(before):
        says = f"{now}; before, it was measured on another machine, other data or with other settings"
        return Verdict(SPEED, True, says)
    ratio = latest.warm.median / before.warm.median
    says = f"{now}, {ratio:.0%} of the {before.warm.median:,.0f} of {before.measured_at}"
    shown = {"records_per_second": latest.warm.median, "records_per_second_before": before.warm.median}
    return Verdict(SPEED, not latest.slower_than(before), says, shown)
