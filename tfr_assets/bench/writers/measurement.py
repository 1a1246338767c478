"""What is measured of a writer."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WriterMeasurement:
    """What writing all records cost. Times are seconds, one for each turn.

    Attributes:
        writer: Name of the writer.
        workers: Threads or processes that worked at once.
        shards: Number of files; None: one, with a name of its own.
        records: Number of records.
        bytes: Size of the files.
        times: From a table in memory to files that are flushed to the disk and have their names.
        plain_times: One thread writes the same bytes from memory to as many files: write, fsync and rename of each.
        early_times: The same, but the disk begins with a file while it is written, as it does with the writers' files.
        cpu_seconds: CPU time, of all threads and processes; the median.
        peak_memory_bytes: Largest resident memory of the process, libraries included, while it writes a stream; with
            worker processes, at most that of all together.
    """

    writer: str
    workers: int
    shards: int | None
    records: int
    bytes: int
    times: tuple[float, ...]
    plain_times: tuple[float, ...]
    early_times: tuple[float, ...]
    cpu_seconds: float
    peak_memory_bytes: int

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "WriterMeasurement":
        """Returns what `asdict` made JSON of."""
        made: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        return cls(**made)

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.times)

    @property
    def fastest(self) -> float:
        """The least time."""
        return min(self.times)

    @property
    def slowest(self) -> float:
        """The most time."""
        return max(self.times)

    @property
    def plain_write_seconds(self) -> float:
        """The plain write's median."""
        return statistics.median(self.plain_times)

    @property
    def records_per_second(self) -> float:
        """Of the median."""
        return self.records / self.seconds

    @property
    def mb_per_second(self) -> float:
        """Millions of bytes of the files, of the median."""
        return self.bytes / self.seconds / 1e6

    @property
    def share_of_plain(self) -> float:
        """How fast it is against the plain write, 1 is as fast: the median of the turns' ratios."""
        return _median_ratio(self.plain_times, self.times)

    @property
    def share_of_early(self) -> float:
        """How fast it is against a plain write that the disk begins with early: how near it is to the disk's limit."""
        return _median_ratio(self.early_times, self.times)

    def speed_against(self, other: "WriterMeasurement") -> float:
        """How many times as fast it is as another that was measured in the same turns: the median of their ratios."""
        return _median_ratio(other.times, self.times)


def _median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(above, below, strict=True))
