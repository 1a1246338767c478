"""Scanning what lies in memory, in pieces of any size, and payloads as the writer takes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tfr_assets.records.examples.encoder import Frames
from tfr_assets.records.frames.scan import Scan, scan_stream

from .reference import frames


class Memory:
    """An `InputStream` that gives at most `piece` bytes at a time; `size=None` hides how many there are."""

    def __init__(self, content: bytes, piece: int = 1 << 30, sized: bool = True) -> None:
        self._content, self._piece, self._at = content, piece, 0
        self.size = len(content) if sized else None

    def read_into(self, target: memoryview) -> int:
        got = self._content[self._at : self._at + min(self._piece, len(target))]
        target[: len(got)] = got
        self._at += len(got)
        return len(got)


@dataclass
class Seen:
    """All records that a scan visits: index, offset of the frame, payload."""

    records: list[tuple[int, int, bytes]] = field(default_factory=list)

    def __call__(self, buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        for start, size, record in frames.tolist():
            self.records.append((record, offset + start - 12, buffer[start : start + size].tobytes()))


def scan(content: bytes, piece: int = 1 << 30, sized: bool = True, max_faults: int = 1000) -> tuple[Scan, Seen]:
    seen = Seen()
    return scan_stream(Memory(content, piece, sized), "memory", seen, max_faults=max_faults), seen


def brief(found: Scan) -> list[tuple[str, int, int]]:
    """Kind, record and offset of each fault."""
    return [(fault.kind.name, fault.record, fault.offset) for fault in found.faults]


def as_frames(payloads: Sequence[bytes]) -> Frames:
    """Payloads as an encoder gives them."""
    return Frames(memoryview(frames(payloads)), np.array([len(payload) + 16 for payload in payloads], np.int64))
