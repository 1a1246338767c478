"""Which positions of an epoch are left, and whose they are.

Workers take consecutive shares of what is left, which differ by one record at most, each from its beginning on. So a
few numbers tell what has been taken, however often the number of workers changed:

    [[2, 3000], [4, 1000]]      two workers took 3000 records each, then four took 1000 each of what was left
    [[[3000, 2000], 2]]         ...of two workers, one took 3000, the other 2000
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfr_assets.reading.locate.shares import share_of

Span = tuple[int, int]
"""The first of some consecutive positions, and the one behind the last."""


@dataclass(frozen=True)
class Positions:
    """Some positions of an epoch, in order.

    Attributes:
        spans: Where they are; none is empty.
    """

    spans: tuple[Span, ...]

    def __len__(self) -> int:
        return sum(stop - start for start, stop in self.spans)

    def part(self, first: int, stop: int) -> "Positions":
        """Returns those from the one of an index on, up to the one before another."""
        found, before = [], 0
        for start, end in self.spans:
            begin, until = max(first - before, 0), min(stop - before, end - start)
            if begin < until:
                found.append((start + begin, start + until))
            before += end - start
        return Positions(tuple(found))

    def share(self, index: int, count: int) -> "Positions":
        """Returns one worker's of several."""
        return self.part(*share_of(len(self), (index, count)))

    def __add__(self, other: "Positions") -> "Positions":
        joined: list[Span] = []
        for start, stop in (*self.spans, *other.spans):
            if joined and joined[-1][1] == start:
                joined[-1] = joined[-1][0], stop
            else:
                joined.append((start, stop))
        return Positions(tuple(joined))

    def cut(self, size: int) -> Iterator["Positions"]:
        """Yields them, so many at a time."""
        for first in range(0, len(self), size):
            yield self.part(first, first + size)

    def to_numpy(self) -> np.ndarray:
        """Returns all of them: int64 of shape (n,)."""
        parts = [np.arange(start, stop) for start, stop in self.spans]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


Taken = Sequence[Any]
"""As the table above: how many workers there were, and how many records each has taken, or all of them have."""


def left_of(size: int, taken: Taken) -> Positions:
    """Returns the positions of an epoch that nobody has taken.

    Args:
        size: Number of records.
        taken: What was taken.
    """
    left = Positions(((0, size),) if size else ())
    for workers, each in taken:
        rest = Positions(())
        for index in range(workers):
            share = left.share(index, workers)
            rest += share.part(each if isinstance(each, int) else each[index], len(share))
        left = rest
    return left


def share_of_left(left: Positions, shard: tuple[int, int], even: str | None) -> Positions:
    """Returns a worker's share of what is left.

    Args:
        left: What is left.
        shard: Which worker, and of how many.
        even: None; `"pad"`: where a share is one record shorter than others, the first one left comes once more;
            `"drop"`: where it is one longer, its last one is left out.
    """
    share = left.share(*shard)
    if even == "drop":
        return share.part(0, len(left) // shard[1])
    if even == "pad" and len(share) * shard[1] < len(left):
        return Positions((*share.spans, *left.part(0, 1).spans))
    return share
