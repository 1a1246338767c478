"""What several threads skipped because of damage, in all, and the warning that says so."""

import threading
import warnings

from tfr_assets.reading.locate.record_files import lines
from tfr_assets.records.frames.skipped import Skipped

_FAULTS_TOLD = 5


class Tally:
    """Adds up what was skipped.

    Attributes:
        skipped: All of it, so far; the faults in the order of the files.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.skipped = Skipped()

    def add(self, skipped: Skipped) -> None:
        """Adds what one thread skipped."""
        if skipped.records or skipped.faults:
            with self._lock:
                total = self.skipped + skipped
                faults = sorted(total.faults, key=lambda fault: (fault.path, fault.record))
                self.skipped = Skipped(total.records, tuple(faults))  # whichever thread was first

    def warn(self, count: int) -> None:
        """Warns of it, if there is anything: `count` is the number of all records."""
        if self.skipped.records or self.skipped.faults:
            told = lines(map(str, self.skipped.faults[:_FAULTS_TOLD]))
            left = f"left out {self.skipped.records} of {count} records, because of damage:\n{told}"
            warnings.warn(left, stacklevel=4)  # at whoever asks the iterator above for more
