"""Numbers as people read them, the limit of a record's length, and how progress is reported."""

from collections.abc import Callable

Advance = Callable[[int], None]
"""Called with how many records, or bytes, were just done; by one thread at a time."""
Progress = Callable[[int, int | None], None]
"""Called with how much is done, and of how much in all; None: only the end tells."""
StepProgress = Callable[[str, int, int], None]
"""Called with what is being done, the number of steps done, and of all steps."""

MAX_RECORD_BYTES = 256 << 20
"""Longest record that is read unless more is asked for. A header's length decides over memory, and a compressed file of
2 MB can hold a record of 2 GB. Images, recordings and texts stay far below, and a thread stays within half a GB."""


SMALL_FILE, IDEAL_FILE, LARGE_FILE = 100_000_000, 150_000_000, 200_000_000
"""Bytes of a shard: from which size on opening files costs readers little, what is planned, and up to which size files
can be shared among readers."""


def megabytes(size: float) -> str:
    """Returns a number of bytes with its unit, such as `12.3 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size:.0f} bytes"
