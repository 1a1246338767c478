"""Which reader was measured to be the best for a dataset."""

from pathlib import Path


def recommended_reader(folder: Path) -> str | None:
    """Returns the reader that a measurement recommends for the dataset in a folder; None where there is none."""
    return None
