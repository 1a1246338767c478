"""Files that are verified here and then opened again by TensorFlow: that it reads the very file that was verified.

Between verifying and opening, a name can come to lead to another file. In this process, TensorFlow is given the open
descriptor in place of the name. Other processes open names, so there it is made sure afterwards, before anything is
used of what they read, that the names still lead to what was verified.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tfr_assets.errors import DamagedFile
from tfr_assets.reading.native.streams import stream_of
from tfr_assets.records.frames.examine import FileReport, examine, examine_open
from tfr_assets.records.frames.scan import FaultKind
from tfr_assets.records.frames.segments import Range, is_replaced, read_segment, stale
from tfr_assets.records.frames.skipped import describe_faults

Identity = tuple[int, ...]


@contextmanager
def verified_path(wanted: Range) -> Iterator[str]:
    """Verifies a range of a local file, and yields a path to that file, whatever happens to its name meanwhile.

    Raises:
        StaleError: The file is not the one whose manifest was opened, or, after the block, was written to in it.
        DamagedFile: It is damaged.
    """
    with _open(wanted) as descriptor:
        before = _write_state(os.fstat(descriptor))
        _verify(descriptor, wanted)
        yield f"/proc/self/fd/{descriptor}"
        if _write_state(os.fstat(descriptor)) != before:
            raise stale(wanted.path)


class VerifiedFiles:
    """Files that were verified, and whether their names still lead to what was.

    Args:
        ranges: The parts of them that are read.
    """

    def __init__(self, ranges: Sequence[Range]) -> None:
        self._ranges = ranges
        self._found: list[tuple[str, Identity] | None] = [None] * len(ranges)

    def verify(self, number: int) -> None:
        """Verifies one of the ranges. Raises as `verified_path`."""
        wanted = self._ranges[number]
        with _open(wanted) as descriptor:
            self._found[number] = wanted.path, _identity(os.fstat(descriptor))
            _verify(descriptor, wanted)

    def check(self) -> None:
        """Makes sure that all names lead to what was verified. Takes a microsecond or two a file.

        Raises:
            StaleError: One does not.
        """
        for path, found in set(filter(None, self._found)):  # a file may have several ranges
            try:
                now = _identity(os.stat(path))  # noqa: PTH116 - with every batch, so that a Path would cost
            except OSError as error:
                raise stale(path) from error
            if now != found:
                raise stale(path)


def _write_state(status: os.stat_result) -> Identity:
    """Returns what changes when a file is written to. The time of its inode's change would also change on renaming."""
    return status.st_size, status.st_mtime_ns


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, *_write_state(status)


@contextmanager
def _open(wanted: Range) -> Iterator[int]:
    try:
        descriptor = os.open(wanted.path, os.O_RDONLY)
    except OSError:
        _refuse(examine(Path(wanted.path), wanted.manifest, max_record_bytes=wanted.max_record_bytes), wanted)
        raise stale(wanted.path) from None  # it came back meanwhile
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _verify(descriptor: int, wanted: Range) -> None:
    """Verifies an open file; raises as `verified_path`.

    Of a whole file, or a compressed one, every byte must be as it was written; of a part, all of its records.
    """
    if wanted.whole or wanted.manifest.compression != "none":
        limit = wanted.max_record_bytes
        _refuse(examine_open(descriptor, Path(wanted.path), wanted.manifest, max_record_bytes=limit), wanted)
        return
    found = 0

    def visit(_buffer: np.ndarray, frames: np.ndarray, _offset: int) -> None:
        nonlocal found
        found += int(((frames[:, 2] >= wanted.first) & (frames[:, 2] < wanted.stop)).sum())

    try:
        stream = stream_of(descriptor, wanted)
        faults = [fault for each in wanted.segments for fault in read_segment(stream, wanted, each, visit, skip=False)]
    except OSError as error:
        raise DamagedFile(f"{wanted.path}: cannot be read: {error.strerror or error}") from error
    if found < wanted.records:
        raise DamagedFile(describe_faults(faults))


def _refuse(report: FileReport, wanted: Range) -> None:
    if report.ok:
        return
    if FaultKind.CONTENT in {fault.kind for fault in report.faults} or is_replaced(wanted.path, wanted.manifest):
        raise stale(wanted.path)
    raise DamagedFile(describe_faults(report.faults))
