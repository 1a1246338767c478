"""What other packages read TFRecord files with, beside `tfr_assets.batches`: ratios in one run, in fresh processes.

Every pass reads the same files in their order, in one process, until its time is over.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tfr_assets.bench.process.fresh import fresh_processes
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
        records: Gives the records of a file, one after another.
    """

    package: str
    gives: str
    records: Callable[[str], Iterator[Any]]


def _by_tfrecord(path: str) -> Iterator[Any]:
    from tfrecord.reader import tfrecord_loader

    return iter(tfrecord_loader(path, None))


def _by_grain(path: str) -> Iterator[Any]:
    from grain.experimental import TFRecordIterDataset

    return iter(TFRecordIterDataset(path))


PEERS = {
    peer.package: peer
    for peer in (
        Peer("tfrecord", "a dict of arrays for each record; no CRC is checked", _by_tfrecord),
        Peer("grain", "bytes, which nothing parses; no CRC is checked", _by_grain),
    )
}


@dataclass(frozen=True)
class BesidePeers:
    """How fast others read the same files.

    Attributes:
        ours: Records a second that `tfr_assets.batches` reads, of all columns.
        theirs: Records a second, by package.
        absent: Packages that are not installed.
    """

    ours: float
    theirs: Mapping[str, float]
    absent: tuple[str, ...]

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

    Raises:
        ProcessFailed: A package failed.
    """
    if files.compression != "none" or files.features.sequence:
        return None
    there = [name for name in PEERS if is_installed(name)]
    absent = tuple(name for name in PEERS if name not in there)
    paths = files.absolute().paths
    with fresh_processes([]) as processes:
        ours = processes.run(f"{__name__}:our_speed", str(Path(paths[0]).parent))[0] if there else 0.0
        theirs = {name: processes.run(f"{__name__}:speed_of", name, paths)[0] for name in there}
    return BesidePeers(ours, theirs, absent)


def speed_of(package: str, paths: Sequence[str]) -> float:
    """Returns the records that a package reads in a second. Runs in a process of its own."""
    peer = PEERS[package]

    def counts() -> Iterator[int]:
        while True:
            yield from (1 for _ in chain.from_iterable(map(peer.records, paths)))

    return _rate(counts())


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
