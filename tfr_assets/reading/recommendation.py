"""Which reader was recommended for a dataset, as `bench` keeps it. Imports no TensorFlow."""

import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

from tfr_assets.layout import RECOMMENDATION
from tfr_assets.reading.hardware import Hardware
from tfr_assets.reading.registry import READERS
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.sealed import seal, unseal


@dataclass(frozen=True)
class Recommendation:
    """The reader to use, and why.

    Attributes:
        reader: Its name.
        why: A sentence or two.
        records_per_second: What all readers were measured at, the fastest first.
        not_recommended: Why a faster one was not chosen, by name.
        batch_size: Records per batch when it was measured.
        hardware: The machine.
        data_version: Of the files.
        measured_at: When.
    """

    reader: str
    why: str
    records_per_second: dict[str, float]
    not_recommended: dict[str, str]
    batch_size: int
    hardware: Hardware
    data_version: str
    measured_at: str

    def save(self, folder: Path) -> Path:
        """Writes `recommendation.json` into a folder, atomically, and returns its path."""
        path = folder / RECOMMENDATION
        write_atomically(path, seal(asdict(self)))
        return path


def recommended_reader(folder: Path) -> str | None:
    """Returns the reader that was measured to be best for a dataset, or None where nothing was measured.

    Warns when it was measured on another machine than this one.

    Args:
        folder: The dataset's folder, or one in it, such as that of its shards.
    """
    found = next(
        (path for path in (folder / "readers", folder.parent / "readers") if (path / RECOMMENDATION).is_file()), None
    )
    if found is None:
        return None
    try:
        values = unseal((found / RECOMMENDATION).read_bytes()) or {}
        reader, hardware = str(values["reader"]), Hardware(**values["hardware"])
    except (OSError, KeyError, TypeError):
        return None  # damaged, or of another version of this project: as if nothing had been measured
    if reader not in READERS:
        return None
    here = Hardware.here()
    if hardware != here:
        warnings.warn(
            f"reader {reader!r} was the fastest on {hardware}; this machine is {here}. "
            f"Measure here with `tfr bench readers {found.parent.name}`, or choose with reader=",
            stacklevel=4,
        )
    return reader
