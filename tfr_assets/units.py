"""Numbers as people read them, and the limit of a record's length."""

MAX_RECORD_BYTES = 256 << 20
"""Longest record that is read unless more is asked for. A header's length decides over memory, and a compressed file of
2 MB can hold a record of 2 GB. Images, recordings and texts stay far below, and a thread stays within half a GB."""


def megabytes(size: float) -> str:
    """Returns a number of bytes with its unit, such as `12.3 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size:.0f} bytes"
