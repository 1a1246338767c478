"""Which reader to recommend: the fastest that was measured, among those that suit everybody."""

from collections.abc import Mapping

from tfr_assets.bench.readers.measurement import Measurement
from tfr_assets.reading.recommendation import Recommendation
from tfr_assets.reading.registry import READERS

LEAST_SECONDS = 0.1  # of a pass by the default: of a shorter one, little but its start is measured


def recommend(measurements: Mapping[str, Measurement], default_reader: str) -> Recommendation | None:
    """Returns the fastest reader that suits everybody and read every record; None if the default was not measured.

    Args:
        measurements: What was measured, by reader.
        default_reader: The one that is used where nothing was measured.

    Speed is that of warm passes. Of measurements on several machines or of several versions of the data, the latest
    one's kind counts.
    """
    alike = comparable_to_latest(measurements)
    ranked = sorted(alike.values(), key=lambda each: each.warm.median, reverse=True)
    suitable = [each for each in ranked if each.complete and not READERS[each.reader].drawback]
    default = next((each for each in suitable if each.reader == default_reader), None)
    if default is None:
        return None  # of a few that happened to be measured, the fastest may be slower
    is_little = default.seconds < LEAST_SECONDS
    best = default if is_little else suitable[0]
    why = f"the default: a pass takes {default.seconds * 1e3:.0f} ms, too little to tell readers apart"
    faster = [each for each in ranked if each.warm.median > best.warm.median]
    return Recommendation(
        reader=best.reader,
        why=why if is_little else _why(best, suitable[1:]),
        records_per_second={each.reader: each.warm.median for each in ranked},
        not_recommended={each.reader: _why_not(each) for each in faster},
        batch_size=best.batch_size,
        hardware=best.hardware,
        data_version=best.data_version,
        measured_at=best.measured_at,
    )


def comparable_to_latest(measurements: Mapping[str, Measurement]) -> dict[str, Measurement]:
    """Returns the measurements of the same machine, data and settings as the latest of them."""
    if not measurements:
        return {}
    latest = max(measurements.values(), key=lambda each: each.measured_at)
    return {name: each for name, each in measurements.items() if each.circumstances == latest.circumstances}


def _why_not(faster: Measurement) -> str:
    if not faster.complete:
        return "it did not read every record"
    return READERS[faster.reader].drawback or "there is too little data to tell"


def _why(best: Measurement, others: list[Measurement]) -> str:
    speed = f"{best.warm.median:,.0f} records/s"
    if not others:
        return f"{speed}; no other reader that suits everybody was measured"
    second = others[0]
    margin = best.warm.median / second.warm.median
    text = f"the fastest with {speed}, {margin:.2f} times {second.reader} ({second.warm.median:,.0f})"
    overlap = best.warm.low <= second.warm.high
    return text + ("; their spreads overlap, so either will do" if overlap else "")
