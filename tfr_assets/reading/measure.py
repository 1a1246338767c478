"""How fast a reader is: whole passes over the files, timed in this process."""

import json
import os
import resource
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_assets.errors import ConfigError, DamagedFile
from tfr_assets.layout import Layout
from tfr_assets.reading.files import RecordFiles
from tfr_assets.reading.locate import locate
from tfr_assets.reading.pipelines import ReadOptions, reader_named
from tfr_assets.records.files import write_atomically


@dataclass(frozen=True)
class Measurement:
    """What reading all records cost; times are medians over the passes, in seconds.

    Attributes:
        reader: Name of the reader.
        batch_size: Records a batch.
        repeats: Number of timed passes.
        records: Records of one pass, counted.
        bytes: Size of the files.
        seconds: Wall time of a pass.
        spread: Slowest less fastest pass.
        records_per_second: Of the median pass.
        mb_per_second: Millions of bytes of the files, of the median pass.
        first_batch_seconds: Wall time from the start of a pass to its first batch.
        cpu_seconds: CPU time of a pass, of all threads.
        peak_memory_bytes: Largest resident memory of the process while measuring, TensorFlow included.
    """

    reader: str
    batch_size: int
    repeats: int
    records: int
    bytes: int
    seconds: float
    spread: float
    records_per_second: float
    mb_per_second: float
    first_batch_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Returns the measurement as JSON-ready values."""
        return asdict(self)

    def save(self, layout: Layout) -> Path:
        """Writes the measurement beside the dataset's others, atomically, and returns its file.

        Raises:
            WriteError: The file system refused.
        """
        path = layout.readers / f"{self.reader}.json"
        write_atomically(path, (json.dumps(self.to_json(), indent=1) + "\n").encode())
        return path


@dataclass(frozen=True)
class _Pass:
    records: int
    seconds: float
    first_batch_seconds: float
    cpu_seconds: float


def measure_reader(
    files: RecordFiles | str | os.PathLike[str],
    reader: str = "vectorized",
    batch_size: int = 4096,
    repeats: int = 3,
    root: Path | None = None,
) -> Measurement:
    """Measures a reader in this process, which should do nothing else meanwhile.

    The page cache is warm: a pass that does not count goes before, so that files which fit into memory come from there.
    Neither the disk, nor TensorFlow's start, nor the building of the pipeline is measured.

    Args:
        files: What to read: located files, or what `locate` takes.
        reader: Name of the reader.
        batch_size: Records a batch.
        repeats: Number of timed passes.
        root: Folder of all datasets; None: `data_root()`.

    Raises:
        ConfigError, StaleError: As `read`; or `repeats` is not positive.
        DamagedFile: As `read`; or a pass failed, or gave another number of records than the manifests say.
    """
    if repeats < 1:
        raise ConfigError(f"repeats={repeats} must be at least 1")
    pipeline, options = reader_named(reader), ReadOptions(batch_size)
    found = files if isinstance(files, RecordFiles) else locate(files, root=root)
    dataset = pipeline(found, options)
    _forget_peak()
    passes = [_timed_pass(dataset, found, reader) for _ in range(1 + repeats)][1:]
    seconds = statistics.median(each.seconds for each in passes)
    return Measurement(
        reader=reader,
        batch_size=batch_size,
        repeats=repeats,
        records=found.records,
        bytes=found.bytes,
        seconds=seconds,
        spread=max(each.seconds for each in passes) - min(each.seconds for each in passes),
        records_per_second=found.records / seconds,
        mb_per_second=found.bytes / seconds / 1e6,
        first_batch_seconds=statistics.median(each.first_batch_seconds for each in passes),
        cpu_seconds=statistics.median(each.cpu_seconds for each in passes),
        peak_memory_bytes=_peak(),
    )


def _timed_pass(dataset: tf.data.Dataset, files: RecordFiles, reader: str) -> _Pass:
    records, first = 0, 0.0
    cpu, start = time.process_time(), time.perf_counter()
    try:
        for batch in dataset:
            first = first or time.perf_counter() - start
            records += int(tf.shape(next(iter(batch.values())), tf.int64)[0])
    except tf.errors.OpError as error:
        raise DamagedFile(_failure(files, reader, error.message)) from error
    timed = _Pass(records, time.perf_counter() - start, first, time.process_time() - cpu)
    if records != files.records:
        raise DamagedFile(_failure(files, reader, f"{records} records came, the manifests say {files.records}"))
    return timed


def _failure(files: RecordFiles, reader: str, what: str) -> str:
    folder = Path(files.paths[0]).parent
    return f"reader {reader!r} failed on files in {folder}: {what}. `tfr verify {folder}` names file, record and offset"


def _forget_peak() -> None:
    """Starts the kernel's record of peak memory anew; where that cannot be, it is that of the process's whole life."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
