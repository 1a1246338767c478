"""Numbers as people read them."""


def megabytes(size: float) -> str:
    """Returns a number of bytes with its unit, such as `12.3 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size:.0f} bytes"
