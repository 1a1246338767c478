"""Segments: the parts of a file whose digests its manifest knows, and whether what was read is what must be there.

A reader holds on to the manifests that it opened. Whatever happens to the files afterwards, no record is used before
the digest of its segment is the one that was opened:

    what was read                             it is
    the digest is right                       what was opened
    intact records, but not these             StaleError: the file was replaced
    damage, and the manifest is another now   StaleError: the file was, or is being, replaced
    damage                                    DamagedFile; or, with `skip`, the rest is used if it is proven

The rest is proven where one record of a segment is lost, because length and CRC of the lost one follow from the digest,
and its length must be what is lacking. Where more are lost, the others must lie where the index says, whose
checksum the manifest has.

Refreshing does not keep the old files for those who still read them. The names of shards are a standard that other
tools glob for, so that they cannot be versioned; and a file that is open stays what it was until it is closed, so that
only what is opened later is refused, in words that say what to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from tfr_assets.errors import DamagedFile, StaleError
from tfr_assets.layout import index_path
from tfr_assets.records.frames.compression import InputStream
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.frames.manifest import FRAMING, Manifest
from tfr_assets.records.frames.scan import Fault, FaultKind, FrameVisitor, Scan, scan_stream
from tfr_assets.records.frames.skipped import MOST_FAULTS, describe_faults
from tfr_assets.records.kernels.digest import lost_record, second_part
from tfr_assets.storage.file_names import is_remote
from tfr_assets.units import MAX_RECORD_BYTES

_HEADER = 12  # bytes of a frame before its record


@dataclass(frozen=True)
class Segment:
    """Consecutive records of a file and their digest.

    Attributes:
        first: Index of the first record.
        records: Number of records.
        start: Where the first one's frame starts in the decompressed stream.
        stop: Where the last one's ends.
        digest: Digest over these records.
    """

    first: int
    records: int
    start: int
    stop: int
    digest: int


@dataclass(frozen=True)
class Range:
    """Consecutive records of a file.

    Attributes:
        path: The file, or its URL.
        manifest: The file's, as it was opened.
        segments: The parts of the file that are read, all that hold these records among them.
        first: Index of the first record.
        records: Number of records.
        max_record_bytes: Length beyond which a record is damage.
    """

    path: str
    manifest: Manifest
    segments: tuple[Segment, ...]
    first: int
    records: int
    max_record_bytes: int = MAX_RECORD_BYTES

    @property
    def stop(self) -> int:
        """Index of the record after the last."""
        return self.first + self.records

    @property
    def whole(self) -> bool:
        """Whether these are all records of the file."""
        return self.records == self.manifest.records

    @property
    def skip(self) -> int:
        """Number of records to skip, from where reading starts."""
        return self.first - self.segments[0].first

    @property
    def start(self) -> int:
        """Byte of the decompressed stream at which reading starts."""
        return self.segments[0].start

    @property
    def bytes_read(self) -> tuple[int, int]:
        """Where in the file reading starts and ends."""
        if self.manifest.compression != "none":
            return 0, self.manifest.bytes
        return self.start, self.segments[-1].stop


def segments_of(manifest: Manifest) -> tuple[Segment, ...]:
    """Returns all segments of a file, in order."""
    return tuple(
        Segment(
            before.records,
            after.records - before.records,
            before.bytes,
            after.bytes,
            second_part(after.digest, before.digest, after.records - before.records),
        )
        for before, after in pairwise(manifest.bounds)
    )


def read_segment(
    stream: InputStream, wanted: Range, segment: Segment, visit: FrameVisitor, skip: bool
) -> tuple[Fault, ...]:
    """Reads a segment, and makes sure that its intact records are those that must be there.

    Args:
        stream: The file's content, from the segment's start on.
        wanted: What is read.
        segment: One of its segments.
        visit: Takes the intact records, none of which may be used before this function has returned.
        skip: Whether more than one record may be lost.

    Returns:
        The faults that were found.

    Raises:
        StaleError: The file is not what was opened.
        DamagedFile: There is damage, and nothing proves that the intact records are the right ones.
    """
    ends = wanted.manifest.compression != "none" and segment.stop == wanted.manifest.stream_bytes
    part = stream if ends else _Part(stream, segment.stop - segment.start)
    places: list[np.ndarray] = []

    def visit_and_note(buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        places.append(frames[:, :2] + [offset, 0])
        visit(buffer, frames, offset)

    scan = scan_stream(
        part, wanted.path, visit_and_note if skip else visit,
        max_faults=MOST_FAULTS, origin=segment.start, first=segment.first, max_record_bytes=wanted.max_record_bytes,
    )  # fmt: skip
    if (scan.records, scan.digest) == (segment.records, segment.digest):
        return scan.faults
    faults = scan.faults
    if not faults:
        if scan.stream_bytes >= segment.stop - segment.start:
            raise stale(wanted.path)
        text = f"{scan.records} of the {segment.records} records from record {segment.first} on are there"
        end = segment.start + scan.stream_bytes
        faults = (Fault(wanted.path, segment.first + scan.records, end, FaultKind.COUNT, text),)
    if is_replaced(wanted.path, wanted.manifest):
        raise stale(wanted.path)
    lost = segment.records - scan.records
    if lost == 1:
        if not _proven(scan, segment):
            raise stale(wanted.path)
    elif not skip:
        raise DamagedFile(describe_faults(faults))
    elif lost < 1 or not _lie_where_written(places, wanted):
        raise DamagedFile(
            f"{describe_faults(faults[:1])}, and more records of this part are lost; no valid index confirms the "
            "others. Restore the file, or write it again"
        )
    return faults


def ends(faults: Sequence[Fault]) -> bool:
    """Whether nothing can be read after what was found."""
    return any(fault.kind in _ENDS for fault in faults)


_ENDS = (FaultKind.TRUNCATED_STREAM, FaultKind.DAMAGED_STREAM, FaultKind.COUNT)


def is_replaced(path: str, manifest: Manifest) -> bool:
    """Whether a local file has another manifest by now, or none: a manifest is removed before its file is replaced.

    Of a remote one without manifest, whether it is of another version than the one that was read to find its records.
    It only tells what to say of a file that is not what was opened: what is used is compared with what was opened.
    """
    if not is_remote(path):
        return Manifest.load(Path(path)) != manifest
    from tfr_assets.storage.versions import version_at  # not above: most files are of this machine

    known = manifest.made_from.get("version")
    return bool(known) and version_at(path).version != known


def stale(path: str) -> StaleError:
    """Returns the error for a file whose records are not, or may not be, those that were opened."""
    folder = path.rpartition("/")[0] or "."
    help_ = "" if is_remote(path) else f"; if that does not help, `tfr verify {folder}` tells what is wrong"
    return StaleError(
        f"{path} is not the file that its manifest described when the dataset was opened: it was replaced, for "
        f"example by a refresh. Open the dataset again{help_}"
    )


def _proven(scan: Scan, segment: Segment) -> bool:
    """Whether the only record that is lost is one that makes the digest right."""
    before, digest = scan.sound
    length, _ = lost_record(segment.digest, digest, scan.digest, segment.records - before - 1)
    return length == segment.stop - segment.start - scan.payload_bytes - FRAMING * segment.records


def _lie_where_written(places: Sequence[np.ndarray], wanted: Range) -> bool:
    """Whether records are where the index has one of their size."""
    if not places:
        return True
    if is_remote(wanted.path) or wanted.manifest.index is None:
        return False
    try:
        index = read_index(index_path(Path(wanted.path)), wanted.manifest.index)
    except (OSError, ValueError):
        return False
    found = np.concatenate(places)
    starts = index[:, 0] + _HEADER
    at = np.searchsorted(starts, found[:, 0])
    if (at == len(starts)).any():
        return False
    return bool(((starts[at] == found[:, 0]) & (index[at, 1] - FRAMING == found[:, 1])).all())


class _Part:
    """The next bytes of a stream, so many."""

    def __init__(self, stream: InputStream, size: int) -> None:
        self._stream, self._left = stream, size
        self.size: int | None = size

    def read_into(self, target: memoryview) -> int:
        """See `InputStream`."""
        got = self._stream.read_into(target[: self._left]) if self._left else 0
        self._left -= got
        return got
