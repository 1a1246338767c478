"""What several threads skipped because of damage, in all, and the warning that says so."""

import sys
import threading
import warnings
from pathlib import Path

from tfr_assets.reading.locate.record_files import lines
from tfr_assets.records.frames.skipped import Skipped

_FAULTS_TOLD = 5
_PACKAGE = str(Path(__file__).parents[2])


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
            warnings.warn(left, stacklevel=_depth())  # at whoever asks the iterator for more


def _depth() -> int:
    """Returns how many frames above the caller the first one is that is not of this package."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    return depth
