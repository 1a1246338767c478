"""What is measured of a dataset's writers, as its YAML says it. Imports nothing heavy: definitions load it."""

import os
from typing import Annotated

from pydantic import AfterValidator, Field

from tfr_assets.bench.writers.measured import MEASURED
from tfr_assets.errors import suggestion
from tfr_assets.option_groups import Expect, Whole, options, problem


def _check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in MEASURED:
            raise problem(f"there is no writer {name!r}; {suggestion(name, MEASURED, 'there are')}")
    if not names or len(set(names)) < len(names):
        raise problem(f"expected names that differ, at least one; found {list(names)}")
    return names


_Count = Annotated[int, Whole(1)]
_Counts = Annotated[tuple[_Count, ...], Expect("a list of whole numbers, such as [1, 2, 4]", deep=False)]
_Names = Annotated[
    tuple[str, ...], Expect("a list of texts, such as [sharded_threads, locked]"), AfterValidator(_check_names)
]


@options("writers")
class WriterTrials:
    """How the writers are measured.

    Attributes:
        rows: Most rows that are written, the first of them. Default: as many as take about a minute.
        workers: Numbers of workers to measure with. Default: 1, 2, 4 and so on, up to one per processor.
        repeats: Number of timed writes.
        only: Names of the writers.

    Raises:
        ConfigError: A setting cannot work.
    """

    rows: _Count | None = Field(default=None, examples=[50_000])
    workers: _Counts = Field(default=(), examples=[[1, 2, 4, 8]])
    repeats: _Count = Field(default=3, examples=[5])
    only: _Names = Field(default=tuple(MEASURED), examples=[["sharded_threads", "single_writer_queue"]])

    def workers_of(self, writer: str) -> tuple[int, ...]:
        """Returns the numbers of workers to measure a writer with, in ascending order."""
        return self.counts if MEASURED[writer].in_parallel else (1,)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of workers, in ascending order."""
        most = len(os.sched_getaffinity(0))
        powers = (1 << power for power in range(most.bit_length()))
        return tuple(sorted({*self.workers} or {*powers, most}))
