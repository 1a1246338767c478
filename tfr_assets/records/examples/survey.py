"""TFRecord files of other origin: what they hold, found by reading them, as a manifest would say it.

A feature spec is inferred from a few records of each file. Then all records are checked against it by compiled code;
those that do not fit widen it. What was widened admits all that fitted before: so files are read three times at most.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_assets.errors import ConfigError, DamagedFile, SchemaError
from tfr_assets.records.examples.measure import Measured, measure_record
from tfr_assets.records.frames.compression import detect_compression, open_input
from tfr_assets.records.frames.manifest import FRAMING, Manifest, Mark
from tfr_assets.records.frames.marks import SPAN
from tfr_assets.records.frames.scan import FrameVisitor, Scan, scan_stream
from tfr_assets.records.kernels.digest import to_text
from tfr_assets.records.kernels.validate import FeatureChecker
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.units import MAX_RECORD_BYTES

_SAMPLE = 10  # records of each file
_NAMED = 5  # faults
_AT_ONCE = 256  # records checked before those that do not fit widen the spec
_MOST_NEW = 10_000  # features that the first records do not have
_TYPES = {"int64": pa.int64(), "float32": pa.float32(), "bytes": pa.binary()}


@dataclass(frozen=True)
class Surveyed:
    """A file that was read.

    Attributes:
        manifest: What it holds; without index.
        sizes: int64 of shape (records,): sizes of its frames.
        status: What it was when it was opened.
    """

    manifest: Manifest
    sizes: np.ndarray
    status: os.stat_result


@dataclass
class _Lengths:
    """Numbers of values that some lists have.

    Attributes:
        kinds: Their kinds; none is known of an empty list.
        fewest: Of values.
        most: Of values.
    """

    kinds: set[str] = field(default_factory=set)
    fewest: int = 2**63
    most: int = 0

    def add(self, count: int) -> None:
        self.fewest, self.most = min(self.fewest, count), max(self.most, count)

    def arrow_type(self, name: str) -> pa.DataType:
        if len(self.kinds) > 1:
            kinds = " and ".join(sorted(self.kinds))
            raise SchemaError(f"feature {name!r} is of several kinds: {kinds}; parsers take one, so write it as one")
        value = _TYPES[next(iter(self.kinds), "bytes")]
        if self.fewest == self.most == 1:
            return value
        return pa.list_(value, self.most) if self.fewest == self.most and self.most else pa.list_(value)


@dataclass
class _Seen:
    """What was seen of a feature.

    Attributes:
        records: How many have it.
        is_list: Whether it is a feature list; None: not known yet.
        values: Of it, or of its steps.
    """

    records: int = 0
    is_list: bool | None = None
    values: _Lengths = field(default_factory=_Lengths)


class Inference:
    """The feature spec of records, as far as they were seen."""

    def __init__(self) -> None:
        self._records = 0
        self._features: dict[str, _Seen] = {}

    def add(self, record: Sequence[tuple[str, Measured]]) -> None:
        """Takes another record into account.

        Raises:
            SchemaError: It has a feature that is a feature list in others.
        """
        self._records += 1
        for name, found in record:
            seen = self._features.setdefault(name, _Seen())
            if not found.is_list and not found.kinds:
                continue  # parsers take it as absent
            if seen.is_list not in (None, found.is_list):
                raise SchemaError(f"{name!r} is a feature of some records and a feature list of others; write one kind")
            seen.is_list = found.is_list
            seen.records += 1
            seen.values.kinds |= found.kinds
            for count in found.counts:
                seen.values.add(count)

    def spec(self) -> FeatureSpec:
        """Returns how such records are parsed: one value each is a scalar, as many in each record a fixed shape.

        Raises:
            SchemaError: A feature is of several kinds or has no name, or there is none.
        """
        if not self._features:
            raise SchemaError(
                "the records have no features, or there are no records, so that nothing says what they hold"
            )
        if "" in self._features:
            raise SchemaError("a feature has an empty name, so that it cannot be asked for; give it one in its writer")
        schema, sequence = {}, []
        for name, seen in sorted(self._features.items()):
            schema[name] = seen.values.arrow_type(name)
            if seen.is_list:
                schema[name] = pa.list_(schema[name])
                sequence.append(name)
        nulls = {name: self._records - seen.records for name, seen in self._features.items()}
        return derive_spec(pa.schema(schema.items()), nulls, FeatureOptions(sequence=tuple(sequence)))


def survey(
    paths: Sequence[Path], made_from: dict[str, Any], max_record_bytes: int | None = None
) -> tuple[FeatureSpec, list[Surveyed]]:
    """Reads files to their ends, twice or three times, and says what they hold.

    Args:
        paths: Files of one kind of records, of any origin.
        made_from: For their manifests.
        max_record_bytes: Length beyond which a record is damage; None: 256 MiB.

    Raises:
        DamagedFile: A file is damaged, cannot be read, or changed meanwhile.
        SchemaError: Their records are no tf.Examples, or of several kinds.
    """
    inference, limit = Inference(), max_record_bytes or MAX_RECORD_BYTES
    opened = [_read(path, _Sampler(path, inference), limit) for path in paths]
    with _naming(paths[0] if len(paths) == 1 else f"{paths[0]} …"):
        spec = inference.spec()
    most, widened = len(spec.features) + _MOST_NEW, True
    while widened:
        again, widened = [], False
        for path, first in zip(paths, opened, strict=True):
            misfits = _Misfits(path, inference, spec, most)
            again.append(_read(path, misfits, limit, _marks_of(first.sizes)))
            widened, spec = widened or misfits.spec is not spec, misfits.spec
    found = []
    for path, first, last in zip(paths, opened, again, strict=True):
        if (first.scan.digest, first.scan.records) != (last.scan.digest, last.scan.records):
            raise DamagedFile(f"{path} was changed while it was read; begin again when it is whole")
        found.append(Surveyed(_manifest(path, last, spec, made_from), last.sizes, last.status))
    return spec, found


@dataclass(frozen=True)
class _Read:
    scan: Scan
    sizes: np.ndarray
    compression: str
    status: os.stat_result


def _read(path: Path, visit: FrameVisitor, max_record_bytes: int, stops: Sequence[int] = ()) -> _Read:
    sizes: list[np.ndarray] = []

    def visit_all(buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        sizes.append(frames[:, 1] + FRAMING)
        visit(buffer, frames, offset)

    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        status, compression = os.fstat(descriptor), detect_compression(os.pread(descriptor, 12, 0))
        stream = open_input(descriptor, compression)
        scan = scan_stream(stream, path, visit_all, max_record_bytes=max_record_bytes, stops=stops)
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}") from error
    finally:
        os.close(descriptor)
    if scan.faults:
        named = "\n".join(map(str, scan.faults[:_NAMED]))
        raise DamagedFile(f"{named}; get {path} again: what a damaged file held is not known")
    return _Read(scan, np.concatenate([np.empty(0, np.int64), *sizes]), compression, status)


class _Sampler:
    """Takes the first records of a file into account."""

    def __init__(self, path: Path, inference: Inference) -> None:
        self._path, self._inference, self._left = path, inference, _SAMPLE

    def __call__(self, buffer: np.ndarray, frames: np.ndarray, _offset: int) -> None:
        some = frames[: self._left]
        for frame in some:
            _add(self._inference, self._path, buffer, frame)
        self._left -= len(some)


class _Misfits:
    """Takes the records into account that do not fit a spec.

    Args:
        path: Their file.
        inference: Where they are added.
        spec: The spec.
        most: Features of a spec.

    Attributes:
        spec: The spec that records fit: the same, unless there were some that do not.
    """

    def __init__(self, path: Path, inference: Inference, spec: FeatureSpec, most: int) -> None:
        self._path, self._inference, self._most = path, inference, most
        self._use(spec)

    def _use(self, spec: FeatureSpec) -> None:
        self.spec, self._checker = spec, FeatureChecker(spec, _AT_ONCE, feature_lists=True)

    def __call__(self, buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        for row in range(0, len(frames), _AT_ONCE):
            some = frames[row : row + _AT_ONCE]
            self._checker.visit(buffer, some, offset)
            if problems := self._checker.problems:
                self._widen(buffer, some, problems)

    def _widen(self, buffer: np.ndarray, frames: np.ndarray, problems: list[tuple[int, int, str]]) -> None:
        """Goes on with a spec that admits records that do not fit.

        Raises:
            SchemaError: None does.
        """
        rows = np.searchsorted(frames[:, 2], [record for record, _, _ in problems])
        for frame in frames[rows]:
            _add(self._inference, self._path, buffer, frame)
        record, at, text = problems[0]
        where = f"{self._path}: record {record} at byte {at}"
        with _naming(self._path):
            spec = self._inference.spec()
        if spec == self.spec:
            raise SchemaError(f"{where} {text}; its file cannot be read with the others")
        if len(spec.features) > self._most:
            raise SchemaError(
                f"{where} {text}: with it there are more than {self._most} features, as where names are data; write "
                "such names as values"
            )
        self._use(spec)


def _add(inference: Inference, path: Path, buffer: np.ndarray, frame: np.ndarray) -> None:
    """Takes a record into account.

    Raises:
        SchemaError: It is no tf.Example, or has a feature that is a feature list in others.
    """
    start, size, record = frame.tolist()
    found = measure_record(buffer[start : start + size])
    if found is None:
        raise SchemaError(
            f"{path}: record {record} is neither a tf.Example nor a tf.SequenceExample; only its bytes can be read, "
            "with tf.data.TFRecordDataset"
        )
    with _naming(f"{path}: record {record}"):
        inference.add(found)


@contextmanager
def _naming(where: object) -> Iterator[None]:
    """Says of which records an error is: it may be one of the options that specs written here have."""
    try:
        yield
    except (ConfigError, SchemaError) as error:
        raise SchemaError(f"{where}: {error}") from error


def _marks_of(sizes: np.ndarray) -> list[int]:
    """Returns where a manifest's marks are: see `records.frames.marks`."""
    ends, found = np.cumsum(sizes), [0]
    while (index := int(ends.searchsorted(found[-1] + SPAN))) < len(ends) - 1:
        found.append(int(ends[index]))
    return found[1:]


def _manifest(path: Path, found: _Read, spec: FeatureSpec, made_from: dict[str, Any]) -> Manifest:
    return Manifest(
        file=path.name,
        records=found.scan.records,
        bytes=found.status.st_size,
        payload_bytes=found.scan.payload_bytes,
        compression=found.compression,
        digest=to_text(found.scan.digest),
        features=spec,
        made_from=made_from,
        marks=tuple(Mark(records, at, digest) for at, records, digest in found.scan.stops),
    )
