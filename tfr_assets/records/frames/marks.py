"""Marks: the digest so far, noted on the way through a file.

A mark stands after the first record with which at least SPAN bytes of the stream have come since the mark before. So
where marks stand follows from the records alone, not from how many were written at a time. None stands at the end,
which the manifest has anyway.
"""

from collections.abc import Iterable

import numpy as np

from tfr_assets.records.frames.manifest import START, Manifest, Mark
from tfr_assets.records.kernels.digest import combine, digest_frames

SPAN = 16 << 20  # bytes: some milliseconds of reading


class Marker:
    """Follows a stream of frames and sets its marks.

    Attributes:
        end: Where the stream ends so far.
    """

    def __init__(self) -> None:
        self.end = START
        self._marks = [START]

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks, if the stream ends here."""
        return tuple(mark for mark in self._marks[1:] if mark.records < self.end.records)

    def append(self, data: memoryview, sizes: np.ndarray) -> None:
        """Continues over whole frames.

        Args:
            data: Consecutive frames.
            sizes: int64 of shape (records,): their sizes.
        """
        while (wanted := self._marks[-1].bytes + SPAN - self.end.bytes) <= len(data):
            ends = np.cumsum(sizes)
            count = int(ends.searchsorted(wanted)) + 1
            stop = int(ends[count - 1])
            self._fold(data[:stop], sizes[:count])
            self._marks.append(self.end)
            data, sizes = data[stop:], sizes[count:]
        self._fold(data, sizes)

    def _fold(self, data: memoryview, sizes: np.ndarray) -> None:
        end = self.end
        digest = digest_frames(end.digest, data, sizes)
        self.end = Mark(end.records + len(sizes), end.bytes + len(data), digest)


def join_marks(parts: Iterable[Manifest]) -> tuple[Mark, ...]:
    """Returns what is known of a concatenation from its parts' manifests: marks at least SPAN bytes apart, and the end.

    They stand where its parts have marks or end, so that no byte is read.
    """
    kept, start = [START], START
    end = START
    for part in parts:
        for mark in part.bounds[1:]:
            digest = combine(start.digest, mark.digest, mark.records)
            end = Mark(start.records + mark.records, start.bytes + mark.bytes, digest)
            if end.bytes - kept[-1].bytes >= SPAN:
                kept.append(end)
        start = end
    return (*(mark for mark in kept[1:] if mark.records < end.records), end)
