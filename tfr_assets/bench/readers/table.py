"""The table of readers: the same in a terminal, in the UI and in a CSV file."""

import csv
import io
from collections.abc import Mapping

from tfr_assets.bench.readers.measurement import Measurement, Spread
from tfr_assets.units import megabytes

COLUMNS = (
    "reader",
    "records/s",
    "from – to",
    "cold",
    "MB/s",
    "of the limit",
    "first batch",
    "cores",
    "memory",
    "files open",
    "records read",
)
NOTE = (
    "records/s: median of warm passes, files in the page cache. cold: of first passes, files out of it. "
    "of the limit: bytes a second, against plain sequential reading of the same files. cores: CPU time over wall time. "
    "memory, files open: the most that was seen, TensorFlow's own included."
)
_CSV = ("records_per_second", "low", "high", "cold_records_per_second", "mb_per_second", "share_of_limit")
_FIELDS = (
    *("share_of_limit_cold", "first_batch_warm", "first_batch_cold", "cpu_seconds", "busy_cores", "peak_memory_bytes"),
    *("descriptors", "records", "records_read", "repeats", "batch_size", "data_version", "measured_at"),
)


def rows(measurements: Mapping[str, Measurement]) -> list[tuple[str, ...]]:
    """Returns a line of texts for each reader, the fastest first; see `COLUMNS`."""
    return [
        (
            each.reader,
            f"{each.warm.median:,.0f}",
            _range(each.warm),
            f"{each.cold.median:,.0f}",
            f"{each.mb_per_second:,.1f}",
            f"{each.share_of_limit:.1%}",
            f"{each.first_batch_warm * 1e3:,.1f} ms",
            f"{each.busy_cores:.2f}",
            megabytes(each.peak_memory_bytes),
            f"{each.descriptors}",
            "all" if each.complete else f"{each.records_read:,} of {each.records:,}",
        )
        for each in ranked(measurements)
    ]


def as_csv(measurements: Mapping[str, Measurement]) -> str:
    """Returns the same in numbers: seconds, bytes, records a second."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("reader", *_CSV, *_FIELDS))
    for each in ranked(measurements):
        speed = (each.warm.median, each.warm.low, each.warm.high, each.cold.median)
        figures = (*speed, each.mb_per_second, each.share_of_limit)
        writer.writerow((each.reader, *figures, *(getattr(each, name) for name in _FIELDS)))
    return text.getvalue()


def ranked(measurements: Mapping[str, Measurement]) -> list[Measurement]:
    """Returns measurements, the fastest first."""
    return sorted(measurements.values(), key=lambda each: each.warm.median, reverse=True)


def _range(spread: Spread) -> str:
    return "once" if spread.low == spread.high else f"{spread.low:,.0f} – {spread.high:,.0f}"
