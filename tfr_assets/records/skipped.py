"""What reading passed over because of damage."""

from dataclasses import dataclass

from tfr_assets.records.scan import Fault

MOST_FAULTS = 1000


@dataclass(frozen=True)
class Skipped:
    """What was passed over.

    Attributes:
        records: Number of records.
        faults: What was wrong with them, as far as it was kept: one damaged header can cost several records.
    """

    records: int = 0
    faults: tuple[Fault, ...] = ()

    def __add__(self, other: "Skipped") -> "Skipped":
        return Skipped(self.records + other.records, (self.faults + other.faults)[:MOST_FAULTS])
