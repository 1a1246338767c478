"""Damage that was found while reading: what is said of it, and what is known of what was skipped."""

from collections.abc import Sequence
from dataclasses import dataclass

from tfr_assets.records.frames.scan import Fault
from tfr_assets.storage.file_names import is_remote

MOST_FAULTS = 1000
_SAID = 3


def describe_faults(faults: Sequence[Fault]) -> str:
    """Returns what to say of damage and what to do, a line per fault; nothing if there is none."""
    if not faults:
        return ""
    folder = faults[0].path.rpartition("/")[0] or "."
    listed = "" if is_remote(folder) else f"`tfr verify {folder}` lists all damage, and "
    return "\n".join(map(str, faults[:_SAID])) + f"; {listed}on_error='skip' skips it"


@dataclass(frozen=True)
class Skipped:
    """What was skipped.

    Attributes:
        records: Number of records.
        faults: What was wrong with them, as far as it was kept: one damaged header can cost several records.
    """

    records: int = 0
    faults: tuple[Fault, ...] = ()

    def __add__(self, other: "Skipped") -> "Skipped":
        return Skipped(self.records + other.records, (self.faults + other.faults)[:MOST_FAULTS])
