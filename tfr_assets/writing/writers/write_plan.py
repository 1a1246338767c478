"""What a writer is given, besides the rows: the files, and how rows become records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from tfr_assets.layout import assign_rows
from tfr_assets.records.arrow.buffers import Memory
from tfr_assets.records.examples.encoder import ExampleEncoder, Frames
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.writing.writers.payloads import PayloadEncoder


class Encoder(Protocol):
    """Turns rows into frames; not for several threads at once."""

    def encode(self, batch: pa.RecordBatch, first_row: int = 0) -> Iterator[Frames]:
        """Yields the frames of a batch's rows in order."""


@dataclass(frozen=True)
class WritePlan:
    """What to write into which files.

    Attributes:
        paths: The files, one per shard.
        schema: Columns of every batch of rows.
        features: How rows become tf.Examples; None: the only column holds records that are serialized already.
        cast: Arrow type names by column, as in `FeatureOptions`.
        compression: `none`, `gzip` or `zlib`.
        workers: Threads or processes that work at once.
        made_from: What the manifests record besides each shard's rows.
        rows: Number of rows; None where only the end tells.
        ordered: Whether records must keep the order of their rows.
    """

    paths: tuple[Path, ...]
    schema: pa.Schema
    features: FeatureSpec | None
    cast: Mapping[str, str]
    compression: str
    workers: int
    made_from: Mapping[str, Any]
    rows: int | None
    ordered: bool = True

    def encoder(self, memory: Memory | None = None) -> Encoder:
        """Returns a new encoder, which writes into `memory`; None: frames are valid until its next step."""
        return PayloadEncoder(memory) if self.features is None else ExampleEncoder(self.features, self.cast, memory)

    def shard_made_from(self, shard: int) -> dict[str, Any]:
        """Returns what a shard's manifest records of its making."""
        if self.rows is None:
            return dict(self.made_from)
        assigned = assign_rows(self.rows, len(self.paths))[shard]
        return {**self.made_from, "rows": [assigned.start, assigned.stop]}
