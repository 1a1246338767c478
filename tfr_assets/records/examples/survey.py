"""TFRecord files of other origin: what they hold, found by reading them, as a manifest would say it.

A feature spec is inferred from the first records. Then all records are checked against it by compiled code; those that
do not fit widen it. Where some did, all are checked again, so that what the spec says holds of every record: what was
widened admits all that fitted before, so files are read twice at most.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_assets.errors import ConfigError, DamagedFile, SchemaError
from tfr_assets.records.examples.measure import Measured, measure_record
from tfr_assets.records.frames.compression import Opened, open_file
from tfr_assets.records.frames.manifest import FRAMING, Manifest
from tfr_assets.records.frames.marks import Marker
from tfr_assets.records.frames.scan import FrameVisitor, Scan, scan_stream
from tfr_assets.records.kernels.digest import to_text
from tfr_assets.records.kernels.validate import FeatureChecker
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.units import MAX_RECORD_BYTES

_SAMPLE = 10  # records
_NAMED = 5  # faults
_HEADER = 12  # bytes of a frame before its record
_AT_ONCE = 256  # records checked before those that do not fit widen the spec
_MOST_NEW = 10_000  # features that the first records do not have
Identity = tuple[int, int, int, int] | str
"""Of a local file: device, inode, size, time of change; of a remote one: what its storage tells of its version, or
nothing where that does not tell it from all others."""
_TYPES = {"int64": pa.int64(), "float32": pa.float32(), "bytes": pa.binary()}


@dataclass(frozen=True)
class Surveyed:
    """A file that was read.

    Attributes:
        manifest: What it holds; without index.
        sizes: int64 of shape (records,): sizes of its frames.
        identity: Which file it was.
    """

    manifest: Manifest
    sizes: np.ndarray
    identity: Identity


@dataclass(frozen=True)
class Access:
    """How files of a kind of storage are read.

    Attributes:
        open: Opens one, and closes it after the block.
        identity: Returns what tells a file from any other, and from itself once it was written to.
    """

    open: Callable[[Path | str], AbstractContextManager[Opened]]
    identity: Callable[[Path | str], Identity]


LOCAL = Access(lambda path: open_file(Path(path)), lambda path: identity_of(Path(path).stat()))


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
    """The feature spec of records, as far as they were seen.

    Attributes:
        first: How many features the first spec had; 0 before.
    """

    def __init__(self) -> None:
        self._records = 0
        self._features: dict[str, _Seen] = {}
        self.first = 0

    @property
    def has_features(self) -> bool:
        """Whether any record had one."""
        return bool(self._features)

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
        spec = derive_spec(pa.schema(schema.items()), nulls, FeatureOptions(sequence=tuple(sequence)))
        self.first = self.first or len(spec.features)
        return spec


def identity_of(status: os.stat_result) -> tuple[int, int, int, int]:
    """Returns the identity of a local file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def survey(
    paths: Sequence[Path | str],
    made_from: dict[str, Any],
    max_record_bytes: int | None = None,
    access: Access = LOCAL,
) -> tuple[FeatureSpec, list[Surveyed]]:
    """Reads files to their ends, once or twice, and says what they hold.

    Args:
        paths: Files of one kind of records, of any origin.
        made_from: For their manifests.
        max_record_bytes: Length beyond which a record is damage; None: 256 MiB.
        access: How they are read.

    Raises:
        DamagedFile: A file is damaged, cannot be read, or changed meanwhile.
        SchemaError: Their records are no tf.Examples, or of several kinds.
    """
    inference, limit = Inference(), max_record_bytes or MAX_RECORD_BYTES
    spec: FeatureSpec | None = None
    found: list[_Read] = []
    widened = True
    while widened:
        before, widened = found, False
        found = []
        for path in paths:
            misfits = _Misfits(path, inference, spec)
            found.append(_read(path, misfits, limit, access))
            widened, spec = widened or misfits.widened, misfits.spec
        for path, first, last in zip(paths, before, found, strict=False):  # the first time, there is none before
            if first.scan.digest != last.scan.digest or _differ(first.identity, last.identity):
                raise _changed(path)
    if spec is None:
        with _naming(paths[0] if len(paths) == 1 else f"{paths[0]} …"):
            spec = inference.spec()
    known = spec
    manifests = [_manifest(path, each, known, made_from) for path, each in zip(paths, found, strict=True)]
    return known, [Surveyed(each, read.sizes, read.identity) for each, read in zip(manifests, found, strict=True)]


@dataclass(frozen=True)
class _Read:
    scan: Scan
    sizes: np.ndarray
    marker: Marker
    opened: Opened
    identity: Identity


def _read(path: Path | str, visit: FrameVisitor, max_record_bytes: int, access: Access) -> _Read:
    sizes, marker = [np.empty(0, np.int64)], Marker()

    def visit_all(buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        sizes.append(frames[:, 1] + FRAMING)
        start, (last, length, _) = int(frames[0, 0]) - _HEADER, frames[-1].tolist()
        end = last + length + FRAMING - _HEADER
        if end - start == sizes[-1].sum():  # else there is damage between them, and an error at the end
            marker.append(buffer[start:end].data, sizes[-1])
        visit(buffer, frames, offset)

    try:
        identity = access.identity(path)
        with access.open(path) as opened:
            scan = scan_stream(opened.stream, path, visit_all, max_record_bytes=max_record_bytes)
        now = access.identity(path)
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}") from error
    if _differ(identity, now):
        raise _changed(path)
    if opened.compression == "none" and scan.stream_bytes != opened.bytes:
        raise _changed(path)
    if scan.faults:
        named = "\n".join(map(str, scan.faults[:_NAMED]))
        raise DamagedFile(f"{named}; get {path} again: what a damaged file held is not known")
    return _Read(scan, np.concatenate(sizes), marker, opened, identity if now else now)


def _differ(before: Identity, now: Identity) -> bool:
    """Whether a file is another one by now, as far as that can be told: if either is not empty."""
    return bool(before and now) and before != now


def _changed(path: Path | str) -> DamagedFile:
    return DamagedFile(f"{path} was changed while it was read; begin again when it is whole")


class _Misfits:
    """Takes the first records into account, and then those that do not fit a spec.

    Args:
        path: Their file.
        inference: Where they are added.
        spec: The spec; None: none is known yet.

    Attributes:
        spec: The spec that records fit; None: there was no record with a feature.
        widened: Whether there were some that did not.
    """

    def __init__(self, path: Path | str, inference: Inference, spec: FeatureSpec | None) -> None:
        self._path, self._inference, self.widened = path, inference, False
        self.spec: FeatureSpec | None = None
        if spec:
            self._use(spec)

    def _use(self, spec: FeatureSpec) -> None:
        self.spec, self._checker = spec, FeatureChecker(spec, _AT_ONCE, feature_lists=True)

    def __call__(self, buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        while self.spec is None and len(frames):
            self._begin(buffer, frames[:_SAMPLE])
            if self.spec is None:  # else they are checked, too: what is counted need not be what parsers take
                frames = frames[_SAMPLE:]
        for row in range(0, len(frames), _AT_ONCE):
            some = frames[row : row + _AT_ONCE]
            self._checker.visit(buffer, some, offset)
            if problems := self._checker.problems:
                self._widen(buffer, some, problems)

    def _begin(self, buffer: np.ndarray, frames: np.ndarray) -> None:
        """Begins with the spec of the first records, unless they have no features."""
        for frame in frames:
            _add(self._inference, self._path, buffer, frame)
        if self._inference.has_features:
            with _naming(self._path):
                self._use(self._inference.spec())

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
        most = self._inference.first + _MOST_NEW
        if len(spec.features) > most:
            raise SchemaError(
                f"{where} {text}: with it there are more than {most} features, as where names are data; write such "
                "names as values"
            )
        self._use(spec)
        self.widened = True


def _add(inference: Inference, path: Path | str, buffer: np.ndarray, frame: np.ndarray) -> None:
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


def _manifest(path: Path | str, found: _Read, spec: FeatureSpec, made_from: dict[str, Any]) -> Manifest:
    return Manifest(
        file=str(path).rpartition("/")[2],
        records=found.scan.records,
        bytes=found.opened.bytes,
        payload_bytes=found.scan.payload_bytes,
        compression=found.opened.compression,
        digest=to_text(found.scan.digest),
        features=spec,
        made_from=made_from,
        marks=found.marker.marks,
    )
