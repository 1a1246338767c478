"""What was recorded of a run, as numbers and as a picture. Imports no TensorFlow."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tfr_assets.pictures import timeline

FILES = 3  # that the recorded pipelines read
RECORDS = 16  # of each file
_DESCRIPTIONS = {
    "naive": "one thing after another",
    "prefetch": "the next batch is made while training works on this one",
    "interleave": "several files are opened and read at once",
    "parallel_map": "several records are parsed at once, ahead of training",
    "cache_memory": "the second epoch neither opens, nor reads, nor parses",
    "vectorized": "a batch of records is parsed at once",
}


@dataclass(frozen=True)
class Timeline:
    """Spans of one run.

    Attributes:
        reader: Name of the pipeline.
        lanes: Spans (start, end) in seconds from the run's start, by what was done: open, read, map, train.
        second_epoch: When training began the second epoch.
    """

    reader: str
    lanes: Mapping[str, tuple[tuple[float, float], ...]]
    second_epoch: float

    def to_json(self) -> dict[str, Any]:
        """Returns JSON-ready values."""
        return asdict(self)

    @property
    def seconds(self) -> float:
        """Time from the first span's start to the last one's end."""
        spans = [span for of_lane in self.lanes.values() for span in of_lane]
        return max(end for _, end in spans) - min(start for start, _ in spans) if spans else 0.0

    def picture(self, seconds: float = 0) -> bytes:
        """Returns the timeline as a PNG, its axis at least `seconds` long."""
        marks = {"second epoch": self.second_epoch}
        return timeline(self.lanes, self.reader, _DESCRIPTIONS[self.reader], marks, seconds)
