"""The writers by name."""

from collections.abc import Callable

from tfr_assets.errors import ConfigError, suggestion
from tfr_assets.writing.writers.locked import locked
from tfr_assets.writing.writers.plan import WritePlan
from tfr_assets.writing.writers.report import Report
from tfr_assets.writing.writers.rows import Rows
from tfr_assets.writing.writers.serial import serial
from tfr_assets.writing.writers.sharded_processes import sharded_processes
from tfr_assets.writing.writers.sharded_threads import sharded_threads
from tfr_assets.writing.writers.single_writer_queue import single_writer_queue

Writer = Callable[[WritePlan, Rows, Report], None]
"""Writes all rows into the plan's files and reports each shard as finished or failed; raises what concerns all."""

WRITERS: dict[str, Writer] = {
    writer.__name__: writer for writer in (sharded_threads, sharded_processes, single_writer_queue, locked, serial)
}


def writer_named(name: str) -> Writer:
    """Returns a writer.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in WRITERS:
        raise ConfigError(f"there is no writer {name!r}; {suggestion(name, WRITERS, 'use one of')}")
    return WRITERS[name]
