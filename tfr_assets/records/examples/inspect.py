"""Looks into any TFRecord file: how many records, how large, which features, and what the first ones hold."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tfr_assets.records.examples.wire import Decoded, Steps, Values, decode_record
from tfr_assets.records.frames.compression import Opener, open_file
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.scan import Fault, scan_stream
from tfr_assets.units import MAX_RECORD_BYTES

_SAMPLE = 1000  # records whose features are listed,
_SAMPLE_BYTES = 64 << 20  # or as many as fit into this


@dataclass
class FeatureSeen:
    """What the sampled records have under one name.

    Attributes:
        kinds: How often it was which kind.
        present: Number of sampled records that have it.
        smallest: Fewest values in a record; fewest steps of a feature list.
        largest: Most of them.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    present: int = 0
    smallest: int = 2**63
    largest: int = 0

    def add(self, kind: str, values: Values | Steps) -> None:
        """Counts one more record."""
        self.kinds[kind] += 1
        self.present += 1
        self.smallest = min(self.smallest, len(values))
        self.largest = max(self.largest, len(values))


Record = Decoded | bytes
"""Kind and values by feature; the bytes of a record that is neither tf.Example nor tf.SequenceExample."""


@dataclass(frozen=True)
class Inspection:
    """What a file holds.

    Attributes:
        path: The file.
        bytes: Its size.
        compression: `none`, `gzip` or `zlib`.
        records: Number of intact records.
        payload_bytes: Their bytes, without framing.
        smallest: Bytes of the smallest record.
        largest: Bytes of the largest record.
        sampled: Number of records whose features were looked at.
        not_examples: Number of those that are neither tf.Example nor tf.SequenceExample.
        features: What the others have, by feature.
        first: The first records: kind and values by feature, or bytes for those that are neither.
        faults: The first faults met.
        fault_count: Number of all faults.
    """

    path: str
    bytes: int
    compression: str
    records: int
    payload_bytes: int
    smallest: int
    largest: int
    sampled: int
    not_examples: int
    features: dict[str, FeatureSeen]
    first: list[Record]
    faults: tuple[Fault, ...]
    fault_count: int


def inspect_file(
    path: Path, first: int = 3, max_record_bytes: int | None = None, opener: Opener = open_file
) -> Inspection:
    """Reads a file once and describes it.

    Args:
        path: Any TFRecord file.
        first: Number of records to keep.
        max_record_bytes: Length beyond which a record is a fault; None: 256 MiB, or more if a manifest says that the
            file's records have more in all.
        opener: Opens it.

    Raises:
        OSError: It cannot be read.
    """
    sample: list[bytes] = []
    extremes: list[int] = []
    sampled_bytes = 0

    def visit(buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        extremes.extend((int(frames[:, 1].min()), int(frames[:, 1].max())))
        extremes[:] = [min(extremes), max(extremes)]
        nonlocal sampled_bytes
        for start, size, _ in frames[: max(0, _SAMPLE - len(sample))].tolist():
            if len(sample) >= first and sampled_bytes + size > _SAMPLE_BYTES:
                break
            sample.append(buffer[start : start + size].tobytes())
            sampled_bytes += size

    if max_record_bytes is None:
        manifest = Manifest.load(path)
        max_record_bytes = manifest.max_record_bytes if manifest else MAX_RECORD_BYTES
    with opener(path) as (stream, size, compression):
        scan = scan_stream(stream, path, visit, max_record_bytes=max_record_bytes)
    features: dict[str, FeatureSeen] = {}
    examples = [decode_record(payload) for payload in sample]
    for example in examples:
        for name, (kind, values) in (example or {}).items():
            features.setdefault(name, FeatureSeen()).add(kind, values)
    shown = [p if e is None else e for p, e in zip(sample[:first], examples[:first], strict=True)]
    return Inspection(
        path=str(path),
        bytes=size,
        compression=compression,
        records=scan.records,
        payload_bytes=scan.payload_bytes,
        smallest=extremes[0] if extremes else 0,
        largest=extremes[1] if extremes else 0,
        sampled=len(sample),
        not_examples=sum(example is None for example in examples),
        features=dict(sorted(features.items())),
        first=shown,
        faults=scan.faults,
        fault_count=scan.fault_count,
    )
