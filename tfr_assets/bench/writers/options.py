"""What is measured of a dataset's writers, as its YAML says it. Imports nothing heavy: definitions load it."""

import os
from dataclasses import dataclass

from tfr_assets.bench.writers.measured import MEASURED
from tfr_assets.errors import ConfigError, suggestion


@dataclass(frozen=True)
class WriterTrials:
    """How a dataset's writers are measured.

    Attributes:
        rows: Most rows of the dataset that are written, the first of them; None: as many as take about a minute.
        workers: Numbers of workers to measure with; empty: 1, 2, 4 and so on, up to one per processor.
        repeats: Number of timed writes.
        only: Names of the writers.

    Raises:
        ConfigError: A setting cannot work.
    """

    rows: int | None = None
    workers: tuple[int, ...] = ()
    repeats: int = 3
    only: tuple[str, ...] = tuple(MEASURED)

    def __post_init__(self) -> None:
        counts = {"repeats": self.repeats, **{f"workers[{i}]": count for i, count in enumerate(self.workers)}}
        for name, count in counts.items() if self.rows is None else [("rows", self.rows), *counts.items()]:
            if not isinstance(count, int) or isinstance(count, bool) or count < 1:
                raise ConfigError(f"writers.{name}: expected a whole number from 1 up; found {count!r}")
        for name in self.only:
            if name not in MEASURED:
                raise ConfigError(
                    f"writers.only: there is no writer {name!r}; {suggestion(name, MEASURED, 'there are')}"
                )
        if not self.only or len(set(self.only)) < len(self.only):
            raise ConfigError(f"writers.only: expected names that differ, at least one; found {list(self.only)}")

    def workers_of(self, writer: str) -> tuple[int, ...]:
        """Returns the numbers of workers to measure a writer with, in ascending order."""
        return self.counts if MEASURED[writer].in_parallel else (1,)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of workers, in ascending order."""
        most = len(os.sched_getaffinity(0))
        powers = (1 << power for power in range(most.bit_length()))
        return tuple(sorted({*self.workers} or {*powers, most}))
