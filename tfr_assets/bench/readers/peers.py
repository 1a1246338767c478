"""What other packages read TFRecord files with, beside `tfr_assets.batches`: ratios in one run, in fresh processes.

Every pass reads the same files in their order, in one process, until its time is over; only Ray Data starts processes
of its own, whose starting does not count. (Hugging Face's `datasets` reads no TFRecord files.)
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from tfr_assets.bench.process.fresh import ProcessFailed, fresh_processes
from tfr_assets.packages import is_installed
from tfr_assets.reading.locate.record_files import RecordFiles

_SECONDS = 2.0  # of a pass
_WARM = 0.2  # of what is not counted


@dataclass(frozen=True)
class Peer:
    """Another package.

    Attributes:
        package: Its name.
        gives: What it makes of a record.
        counts: Reads files, one after another, and yields the number of records of each piece as it comes.
        end: Ends what it has started.
    """

    package: str
    gives: str
    counts: Callable[[Sequence[str]], Iterator[int]]
    end: Callable[[], None] = lambda: None


def _by_tfrecord(paths: Sequence[str]) -> Iterator[int]:
    from tfrecord.reader import tfrecord_loader

    for path in paths:
        yield from (1 for _ in tfrecord_loader(path, None))


def _by_grain(paths: Sequence[str]) -> Iterator[int]:
    from grain.experimental import TFRecordIterDataset

    for path in paths:
        yield from (1 for _ in iter(TFRecordIterDataset(path)))


def _by_ray(paths: Sequence[str]) -> Iterator[int]:
    import ray

    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
    for batch in ray.data.read_tfrecords(list(paths)).iter_batches(batch_size=None, batch_format="pyarrow"):
        yield batch.num_rows


def _end_ray() -> None:
    import ray

    ray.shutdown()


PEERS = {
    peer.package: peer
    for peer in (
        Peer("tfrecord", "a dict of arrays for each record; no CRC is checked", _by_tfrecord),
        Peer("grain", "bytes, which nothing parses; no CRC is checked", _by_grain),
        Peer("ray", "Arrow tables, in processes of its own; no CRC is checked", _by_ray, _end_ray),
    )
}


@dataclass(frozen=True)
class BesidePeers:
    """How fast others read the same files.

    Attributes:
        ours: Records a second that `tfr_assets.batches` reads, of all columns.
        theirs: Records a second, by package.
        absent: Packages that are not installed.
        failures: Why others could not be measured, by package.
    """

    ours: float
    theirs: Mapping[str, float]
    absent: tuple[str, ...]
    failures: Mapping[str, str]

    def rows(self) -> list[tuple[str, ...]]:
        """Returns a line of texts for each: package, records a second, how many times as fast we are, what it gives."""
        return [
            ("tfr_assets.batches", f"{self.ours:,.0f}", "", "columns, all CRCs checked"),
            *((name, f"{rate:,.0f}", f"{self.ours / rate:,.1f}×", PEERS[name].gives)
              for name, rate in sorted(self.theirs.items(), key=lambda item: -item[1])),
        ]  # fmt: skip


def measure_peers(files: RecordFiles) -> BesidePeers | None:
    """Measures the packages that are installed; None, if none of them reads such files: compressed, or of sequences.

    Args:
        files: What is read.
    """
    if files.compression != "none" or files.features.sequence:
        return None
    there = [name for name in PEERS if is_installed(name)]
    absent = tuple(name for name in PEERS if name not in there)
    paths = files.absolute().paths
    with fresh_processes([]) as processes:
        ours = processes.run(f"{__name__}:our_speed", str(Path(paths[0]).parent))[0] if there else 0.0
        theirs, failures = {}, {}
        for name in there:
            try:
                theirs[name] = processes.run(f"{__name__}:speed_of", name, paths)[0]
            except ProcessFailed as error:  # it is another's, and says nothing of ours
                failures[name] = str(error)
    return BesidePeers(ours, theirs, absent, failures)


def speed_of(package: str, paths: Sequence[str]) -> float:
    """Returns the records that a package reads in a second. Runs in a process of its own."""
    peer = PEERS[package]
    try:
        return _rate(chain.from_iterable(peer.counts(paths) for _ in count()))
    finally:
        peer.end()


def our_speed(folder: str) -> float:
    """Returns the records that `tfr_assets.batches` reads in a second. Runs in a process of its own."""
    import tfr_assets

    def counts() -> Iterator[int]:
        with tfr_assets.batches(folder, epochs=None, into="arrow") as batches:
            yield from (batch.num_rows for batch in batches)

    return _rate(counts())


def _rate(counts: Iterator[int]) -> float:
    begun = time.perf_counter()
    while time.perf_counter() < begun + _WARM:
        next(counts)
    records, begun = 0, time.perf_counter()
    while (now := time.perf_counter()) < begun + _SECONDS:
        records += next(counts)
    return records / (now - begun)
