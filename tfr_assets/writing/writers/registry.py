"""The writers by name: ways to write rows into files with several workers.

A writer is a function of (plan, rows, report), one entry here, and has the tests of every entry
(`tests/writing/test_writers_agree.py`). `bench` measures these, and others to compare them with. Imports nothing, so
that definitions can list writers at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Literal

from tfr_assets.errors import ConfigError, suggestion

if TYPE_CHECKING:
    from tfr_assets.writing.writers.outcome import Report
    from tfr_assets.writing.writers.rows import Rows
    from tfr_assets.writing.writers.write_plan import WritePlan

WriteFunction = Callable[["WritePlan", "Rows", "Report"], None]
"""Writes all rows into the plan's files and reports each shard as finished or failed; raises what concerns all."""

DEFAULT_FOR_SHARDS = "sharded_threads"
DEFAULT_FOR_ONE_FILE = "single_writer_queue"


@dataclass(frozen=True)
class Writer:
    """A writer. Calling it, as a `WriteFunction`, imports it.

    Attributes:
        name: What `writer=` takes.
        function: Where it is, as "module:function".
        description: What it does, in one line.
        suits: Whether its workers share the files, so that it is for several, or all work on one.
        keeps_order: Whether a file's records are in the order of their rows.
        in_parallel: Whether it has more than one worker.
    """

    name: str
    function: str
    description: str
    suits: Literal["several files", "one file"]
    keeps_order: bool = True
    in_parallel: bool = True

    def __call__(self, plan: "WritePlan", rows: "Rows", report: "Report") -> None:
        """See `WriteFunction`."""
        resolve_name(self.function)(plan, rows, report)


WRITERS = {
    writer.name: writer
    for writer in (
        Writer(
            DEFAULT_FOR_SHARDS,
            f"{__package__}.sharded_threads:sharded_threads",
            "one file per thread at a time",
            suits="several files",
        ),
        Writer(
            "sharded_processes",
            f"{__package__}.sharded_processes:sharded_processes",
            "one file per process at a time, rows sent through pipes",
            suits="several files",
        ),
        Writer(
            DEFAULT_FOR_ONE_FILE,
            f"{__package__}.single_writer_queue:single_writer_queue",
            "threads encode → bounded queue → one thread writes",
            suits="one file",
        ),
    )
}
"""The writers that `tfr_assets.write` knows by name."""


def writer_named(name: str) -> Writer:
    """Returns a writer.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in WRITERS:
        raise ConfigError(f"there is no writer {name!r}; {suggestion(name, WRITERS, 'use one of')}")
    return WRITERS[name]
