"""What was measured of one reader, and where it is kept: beside the data, with the one before."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tfr_assets.reading.hardware import Hardware
from tfr_assets.reading.registry import READERS
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.sealed import seal, unseal

FORMAT = 2
SLOWER = 0.8  # of the speed before, from which on it is a regression


@dataclass(frozen=True)
class Pass:
    """One pass over the records, or over the first of them.

    Attributes:
        records: How many came.
        whole: Whether the pass came to its end, rather than to the end of its time.
        seconds: Wall time.
        first_batch_seconds: Wall time to the first batch.
        cpu_seconds: CPU time of all threads and child processes.
    """

    records: int
    whole: bool
    seconds: float
    first_batch_seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Spread:
    """A figure that was measured several times.

    Attributes:
        median: The middle one.
        low: The smallest.
        high: The largest.
    """

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> "Spread":
        """Returns the spread of at least one value."""
        return Spread(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Measurement:
    """What it costs to read all records with one reader.

    Attributes:
        reader: Its name.
        batch_size: Records per batch.
        step_ms: Simulated training step after each batch.
        decode_ms: Simulated cost of decoding a record.
        epochs: Passes of each process.
        repeats: Processes.
        records: Records that the manifests say there are.
        records_read: Records that came in a pass; where passes differ, what is furthest off.
        bytes: Size of the files.
        cold: Records a second of first passes, with the files out of the page cache.
        warm: Records a second of later passes: files, or what the reader keeps of them, in memory.
        first_batch_cold: Seconds to the first batch of a first pass, median.
        first_batch_warm: The same of later passes.
        cpu_seconds: CPU time of a warm pass over all records, of all threads and child processes, median.
        busy_cores: CPU time over wall time of warm passes, median.
        peak_memory_bytes: Largest resident memory of the process and its children, TensorFlow included.
        descriptors: Largest number of open descriptors in one process.
        plain_cold: Bytes a second of plain sequential reading of the same files in the same run, out of the page cache.
        plain_warm: The same with the files in it.
        hardware: The machine.
        data_version: Of the files.
        measured_at: When: ISO 8601, UTC.
    """

    reader: str
    batch_size: int
    step_ms: float
    decode_ms: float
    epochs: int
    repeats: int
    records: int
    records_read: int
    bytes: int
    cold: Spread
    warm: Spread
    first_batch_cold: float
    first_batch_warm: float
    cpu_seconds: float
    busy_cores: float
    peak_memory_bytes: int
    descriptors: int
    plain_cold: float
    plain_warm: float
    hardware: Hardware
    data_version: str
    measured_at: str

    @property
    def complete(self) -> bool:
        """Whether every record was read, once a pass."""
        return self.records_read == self.records

    @property
    def seconds(self) -> float:
        """Wall time of a warm pass over all records."""
        return self.records / self.warm.median if self.warm.median else 0.0

    @property
    def mb_per_second(self) -> float:
        """Millions of bytes of the files that a warm pass reads a second."""
        return self._bytes_per_second(self.warm) / 1e6

    @property
    def share_of_limit_cold(self) -> float:
        """Speed of first passes, over that of plain reading."""
        return self._bytes_per_second(self.cold) / self.plain_cold if self.plain_cold else 0.0

    @property
    def share_of_limit(self) -> float:
        """Speed of warm passes, over that of plain reading."""
        return self._bytes_per_second(self.warm) / self.plain_warm if self.plain_warm else 0.0

    @property
    def descriptor_ceiling(self) -> int:
        """How many descriptors the reader may have open."""
        return READERS[self.reader].most_descriptors

    @property
    def circumstances(self) -> tuple[Any, ...]:
        """What two measurements must share to be compared."""
        return (self.hardware, self.data_version, self.batch_size, self.step_ms, self.decode_ms)

    def comparable(self, other: "Measurement") -> bool:
        """Whether another measurement is of the same reader, machine, data and settings."""
        return self.reader == other.reader and self.circumstances == other.circumstances

    def slower_than(self, before: "Measurement") -> bool:
        """Whether this is a regression: clearly slower than a comparable measurement, whatever their spreads."""
        return self.warm.median < SLOWER * before.warm.median and self.warm.high < before.warm.low

    def to_json(self) -> dict[str, Any]:
        """Returns JSON-ready values: all fields, and what follows from them."""
        derived = ("seconds", "mb_per_second", "share_of_limit_cold", "share_of_limit")
        return {"format": FORMAT} | asdict(self) | {name: getattr(self, name) for name in derived}

    def save(self, folder: Path) -> Path:
        """Writes the measurement into a folder, atomically, keeps the one before it, and returns its file.

        Raises:
            WriteError: The file system refused.
        """
        path = folder / f"{self.reader}.json"
        if before := _load(path):
            write_atomically(_before(folder, self.reader), seal(before.to_json()))
        write_atomically(path, seal(self.to_json()))
        return path

    def _bytes_per_second(self, speed: Spread) -> float:
        return speed.median * self.bytes / self.records if self.records else 0.0


def load(folder: Path, reader: str) -> Measurement | None:
    """Returns the latest measurement of a reader, or None where there is none that can be read as one."""
    return _load(folder / f"{reader}.json")


def load_before(folder: Path, reader: str) -> Measurement | None:
    """Returns the measurement before the latest one, or None."""
    return _load(_before(folder, reader))


def _before(folder: Path, reader: str) -> Path:
    return folder / "before" / f"{reader}.json"


def _load(path: Path) -> Measurement | None:
    try:
        values = unseal(path.read_bytes()) or {}
        if values.pop("format") != FORMAT or values["reader"] not in READERS:
            return None
        known = {name: values[name] for name in Measurement.__dataclass_fields__}
        spreads = {name: Spread(**known[name]) for name in ("cold", "warm")}
        return Measurement(**known | spreads | {"hardware": Hardware(**known["hardware"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # measured by another version, or damaged: it is measured again, and nothing is lost
        return None
