"""The comparison of all readers: a table, pictures, and the recommendation, as files beside the measurements.

readers/
├── NAME.json              a measurement each; before/NAME.json: the one before
├── table.csv              all of them
├── report.json            all of them, with curves and timelines
├── recommendation.json    the reader that `tfr_assets.read` uses, and why
└── *.png                  bars, curves, a timeline a technique
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tfr_assets.bench.process.fresh import FreshProcesses, fresh_processes
from tfr_assets.bench.readers.measurement import Measurement, load
from tfr_assets.bench.readers.recommend import comparable_to_latest, recommend
from tfr_assets.bench.readers.table import as_csv, ranked
from tfr_assets.bench.readers.timeline import Timeline
from tfr_assets.errors import StaleError
from tfr_assets.layout import RECOMMENDATION
from tfr_assets.pictures import bars, curves
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.recommendation import Recommendation
from tfr_assets.reading.registry import default_reader
from tfr_assets.storage.atomic import remove, write_atomically
from tfr_assets.storage.sealed import seal
from tfr_assets.units import StepProgress

_SPANS, _SWEEP = "tfr_assets.bench.readers.spans", "tfr_assets.bench.readers.sweep"
_TRAINING_MS = 3.0  # a step in the timelines, where none is set: long enough to be seen
_SWEEPS: Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "cycle_length": (("interleave", "autotuned"), (1, 2, 4, 8, 16)),
    "batch_size": (("vectorized", "columnar"), (64, 256, 1024, 2048, 4096, 8192)),
}
_LABELS = {"cycle_length": "files read in turn (cycle length)", "batch_size": "records per batch"}

Curve = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Report:
    """What is known of a dataset's readers.

    Attributes:
        measurements: Those of one machine, one version of the data, and one way of measuring, by reader.
        missing: Why other readers are not among them.
        recommendation: The reader to use; None where no suitable one was measured.
        curves: Records a second over the values of an option, by option and reader.
        timelines: Of real runs, one a technique.
    """

    measurements: Mapping[str, Measurement]
    missing: Mapping[str, str]
    recommendation: Recommendation | None
    curves: Mapping[str, Mapping[str, Curve]]
    timelines: Sequence[Timeline]

    def pictures(self) -> dict[str, bytes]:
        """Returns PNGs by name."""
        drawn = {"speed": self._bars()}
        for option, series in self.curves.items():
            drawn[option] = curves(series, _LABELS[option], "records/s", f"Speed over {option.replace('_', ' ')}")
        longest = max((each.seconds for each in self.timelines), default=0.0)  # one scale, so that lengths compare
        return drawn | {f"timeline_{each.reader}": each.picture(longest) for each in self.timelines}

    def save(self, folder: Path) -> dict[str, Path]:
        """Writes everything into a folder, and returns the pictures' files by name."""
        write_atomically(folder / "table.csv", as_csv(self.measurements).encode())
        write_atomically(folder / "report.json", seal(self.to_json()))
        if self.recommendation:
            self.recommendation.save(folder)
        else:
            remove(folder / RECOMMENDATION)
        drawn = self.pictures()
        paths = {name: folder / f"{name}.png" for name in drawn}
        for name, path in paths.items():
            write_atomically(path, drawn[name])
        return paths

    def to_json(self) -> dict[str, Any]:
        """Returns JSON-ready values."""
        return {
            "recommendation": self.recommendation and asdict(self.recommendation),
            "missing": dict(self.missing),
            "measurements": {name: each.to_json() for name, each in self.measurements.items()},
            "curves": self.curves,
            "timelines": [each.to_json() for each in self.timelines],
        }

    def _bars(self) -> bytes:
        figures = [(m.reader, m.warm.median, m.warm.low, m.warm.high) for m in ranked(self.measurements)]
        naive = self.measurements.get("naive")
        return bars(
            figures,
            "records/s, warm",
            "Readers",
            highlight=self.recommendation.reader if self.recommendation else None,
            reference=("naive", naive.warm.median) if naive and naive.warm.median else None,
        )


def make_report(
    folder: Path,
    files: RecordFiles,
    readers: Sequence[str],
    step_ms: float = 0,
    progress: StepProgress = lambda *_: None,
) -> Report:
    """Compares what was measured of readers, and runs what only pictures need: some seconds for each curve.

    Args:
        folder: Where the measurements are.
        files: What they are of.
        readers: Names of the readers to compare.
        step_ms: Simulated training step of the timelines, in milliseconds.
        progress: Called for every step.

    Returns:
        The report, which is not saved.

    Raises:
        StaleError: There is no measurement.
        DamagedFile: A reader failed on the files.
    """
    found = {reader: measured for reader in readers if (measured := load(folder, reader))}
    if not found:
        raise StaleError(f"no reader was measured yet: {folder} holds no measurement; materialize `readers` first")
    measurements = comparable_to_latest(found)
    sweeps = [
        (option, reader, values)
        for option, (names, values) in _SWEEPS.items()
        for reader in names
        if reader in measurements
    ]
    steps = len(sweeps) + 1
    series: dict[str, dict[str, Curve]] = {}
    with fresh_processes([_SPANS, _SWEEP]) as processes:
        progress("timelines", 0, steps)
        timelines = _timelines(processes, files, step_ms)
        for done, (option, reader, values) in enumerate(sweeps, 1):
            progress(f"{option} of {reader}", done, steps)
            of_files = [value for value in values if option != "cycle_length" or value <= len(files.paths)]
            curve, _ = processes.run(f"{_SWEEP}:sweep", files, reader, option, of_files)
            series.setdefault(option, {})[reader] = curve
    progress("", steps, steps)
    missing = {reader: _why_missing(reader, found) for reader in readers if reader not in measurements}
    return Report(measurements, missing, recommend(measurements, default_reader(files)), series, timelines)


def _timelines(processes: FreshProcesses, files: RecordFiles, step_ms: float) -> Sequence[Timeline]:
    recorded, _ = processes.run(f"{_SPANS}:record_spans", files, step_ms or _TRAINING_MS)
    return recorded


def _why_missing(reader: str, found: Mapping[str, Measurement]) -> str:
    if reader not in found:
        return "not measured yet"
    return "measured on another machine, other data or with other settings than the latest; measure it again"
