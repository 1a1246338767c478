"""How fast the readers are: each in fresh processes, in turn, beside plain reading of the same bytes.

round 1:  plain  naive  prefetch  …  columnar       a fresh process each: cold pass, warm passes
round 2:  plain  naive  prefetch  …  columnar       so that a slow moment of the machine hits all of them
…
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tfr_assets.bench.process.fresh import FreshProcesses, ProcessFailed, fresh_processes
from tfr_assets.bench.process.page_cache import drop_pages, seconds_of_plain_reading
from tfr_assets.bench.process.usage import Watch
from tfr_assets.bench.readers.measurement import Measurement, Pass, Spread
from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.errors import StaleError, TfrError
from tfr_assets.packages import need
from tfr_assets.reading.hardware import Hardware
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.units import StepProgress

_PASSES = "tfr_assets.bench.readers.passes"  # imports TensorFlow, which only the measuring processes need
_LONGEST_WARM_PASS = 3.0  # seconds
_ENOUGH = 10.0  # seconds, after which a reader is not measured once more


@dataclass(frozen=True)
class Measured:
    """The result of measuring readers.

    Attributes:
        measurements: By reader, in the order asked for.
        failures: Why there is none, by reader.
    """

    measurements: Mapping[str, Measurement]
    failures: Mapping[str, str]


def measure_readers(
    files: RecordFiles, options: BenchOptions | None = None, progress: StepProgress = lambda *_: None
) -> Measured:
    """Measures readers. Takes as long as reading everything with each of them, and a little more.

    Args:
        files: What to read.
        options: What to measure; None: all readers.
        progress: Called for every step.

    Returns:
        Measurements. A reader that fails raises nothing here.

    Raises:
        StaleError: There is not a single record.
        ProcessFailed: No process could be started.
        MissingPackage: TensorFlow is not installed.
    """
    need("tensorflow", "TensorFlow", "measuring readers", "`pip install tensorflow`")
    options = options or BenchOptions()
    if not files.records:
        raise StaleError(f"there is no record in {Path(files.paths[0]).parent}, so that there is nothing to measure")
    contestants = {reader: _Contestant() for reader in options.readers}
    plain = _Plain()
    steps = options.repeats * (1 + len(contestants))
    progress("starting", 0, steps)
    with fresh_processes([_PASSES]) as processes:
        for round_ in range(options.repeats):
            progress("plain reading", round_ * (1 + len(contestants)), steps)
            plain.read_once(processes, files)
            for number, (reader, contestant) in enumerate(contestants.items(), 1):
                progress(reader, round_ * (1 + len(contestants)) + number, steps)
                if contestant.wants_more:
                    contestant.read_once(processes, files, reader, options)
    progress("", steps, steps)
    return Measured(
        {name: each.measurement(name, files, options, plain) for name, each in contestants.items() if not each.failure},
        {name: each.failure for name, each in contestants.items() if each.failure},
    )


def data_version(files: RecordFiles) -> str:
    """Returns a hash of what the files hold."""
    content = [[Path(path).name, each.digest] for path, each in zip(files.paths, files.manifests, strict=True)]
    return hashlib.sha256(json.dumps([content, files.records, files.bytes]).encode()).hexdigest()[:16]


def plain_reading(paths: tuple[str, ...]) -> tuple[float, float]:
    """Returns seconds of plain reading of files that are out of the page cache, and of the same in it."""
    drop_pages(paths)
    return seconds_of_plain_reading(paths), seconds_of_plain_reading(paths)


@dataclass
class _Plain:
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)

    def read_once(self, processes: FreshProcesses, files: RecordFiles) -> None:
        (cold, warm), _ = processes.run(f"{__name__}:plain_reading", files.paths)
        self.cold.append(files.bytes / cold)
        self.warm.append(files.bytes / warm)


@dataclass
class _Contestant:
    runs: list[tuple[list[Pass], Watch]] = field(default_factory=list)
    failure: str = ""
    seconds: float = 0.0  # with what goes before the passes: some readers start processes

    @property
    def wants_more(self) -> bool:
        return not self.failure and self.seconds < _ENOUGH

    def read_once(self, processes: FreshProcesses, files: RecordFiles, reader: str, options: BenchOptions) -> None:
        started = time.perf_counter()
        try:
            self.runs.append(processes.run(f"{_PASSES}:read_passes", files, reader, options, _LONGEST_WARM_PASS))
        except (TfrError, ProcessFailed) as error:
            self.failure = str(error).strip()
        self.seconds += time.perf_counter() - started

    def measurement(self, reader: str, files: RecordFiles, options: BenchOptions, plain: _Plain) -> Measurement:
        cold = [passes[0] for passes, _ in self.runs]
        warm = [each for passes, _ in self.runs for each in passes[1:]]
        counts = [each.records for each in cold + warm if each.whole]
        return Measurement(
            reader=reader,
            batch_size=options.batch_size,
            step_ms=options.step_ms,
            decode_ms=options.decode_ms,
            epochs=options.epochs,
            repeats=len(self.runs),
            records=files.records,
            records_read=max(counts, key=lambda count: abs(count - files.records)),
            bytes=files.bytes,
            cold=_speed(cold),
            warm=_speed(warm),
            first_batch_cold=Spread.of([each.first_batch_seconds for each in cold]).median,
            first_batch_warm=Spread.of([each.first_batch_seconds for each in warm]).median,
            cpu_seconds=Spread.of([each.cpu_seconds / max(each.records, 1) * files.records for each in warm]).median,
            busy_cores=Spread.of([each.cpu_seconds / each.seconds for each in warm]).median,
            peak_memory_bytes=max(watch.peak_memory_bytes for _, watch in self.runs),
            descriptors=max(watch.descriptors for _, watch in self.runs),
            plain_cold=Spread.of(plain.cold).median,
            plain_warm=Spread.of(plain.warm).median,
            hardware=Hardware.here(),
            data_version=data_version(files),
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _speed(passes: list[Pass]) -> Spread:
    return Spread.of([each.records / each.seconds for each in passes])
