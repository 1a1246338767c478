"""Memory for what is encoded and decoded, used again as soon as nothing refers to it.

Fresh memory is slow: the kernel hands it out a page at a time, which costs more than writing into it. Arrays of a
batch are too small for the large pages that it also has, so they are cut from slabs, for which NumPy asks for those.
Larger ones are memory of their own. Some of both is kept for what comes next, also the next pass over the data.
"""

import weakref
from collections import defaultdict, deque
from contextlib import suppress
from threading import Lock
from typing import Protocol

import numpy as np

_SLAB = 8 << 20  # NumPy asks for large pages from 4 MB on
_KEPT = 48 << 20  # bytes
_LARGEST = 1 << 20  # that is cut from a slab
_LEAST = 32 << 10  # what is smaller comes from memory that the allocator has at hand
_ALIGNMENT = 64
_BYTE = np.dtype(np.uint8)


class Memory(Protocol):
    """Where an encoder gets its output's memory."""

    def take(self, size: int) -> np.ndarray:
        """Returns at least so many bytes, uint8."""


class Buffer:
    """One piece of memory. What is taken next overwrites what was taken before."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def take(self, size: int) -> np.ndarray:
        """See `Memory`."""
        if size > self._memory.size:
            self._memory = np.empty(size, np.uint8)
        return self._memory


class _Owner(Protocol):
    """Whose memory it is."""

    def take_back(self, memory: np.ndarray) -> None:
        """Takes memory that is not used any more."""


class _Kept:
    """Memory that is not in use, for the next need, in any thread. It has no lock, which a fork could copy held."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._free: dict[int, deque[np.ndarray]] = {}  # by size; sizes are only added where they are asked for

    def take(self, size: int) -> np.ndarray:
        """Returns so many bytes, which come back when no view of them is left."""
        if (free := self._free.get(size)) is None:
            free = self._free.setdefault(size, deque())
        try:
            memory = free.pop()
        except IndexError:
            memory = np.empty(size, np.uint8)
        return np.asarray(_Lease(memory, self))

    def take_back(self, memory: np.ndarray) -> None:
        """See `_Owner`. What comes back is kept rather than what is there of other sizes."""
        if memory.size > self._most:
            return
        own = self._free[memory.size]
        own.append(memory)
        sizes = tuple(self._free.copy().items())  # others add sizes meanwhile
        excess = sum(size * len(free) for size, free in sizes) - self._most
        for size, free in (*(each for each in sizes if each[1] is not own), (memory.size, own)):
            with suppress(IndexError):  # somebody took it
                while excess > 0:
                    free.popleft()
                    excess -= size


class Pool:
    """Gives out arrays, to any threads."""

    def __init__(self) -> None:
        self._asking = Lock()
        self._free: dict[int, deque[np.ndarray]] = defaultdict(deque)
        self._slab, self._used = np.empty(0, np.uint8), 0

    def empty(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Returns an array of shape (count,), not initialized, and not given out again while it has views."""
        size = count * dtype.itemsize
        if size < _LEAST:
            return np.empty(count, dtype)
        if size > _LARGEST:
            return _kept.take(_rounded(size, 2))[:size].view(dtype)
        room = _rounded(size, 4)
        with self._asking:  # not for what comes back, which may happen in the middle of anything
            free = self._free[room]
            memory = free.pop() if free else self._fresh(room)
        return np.asarray(_Lease(memory, self))[:size].view(dtype)

    def take(self, size: int) -> np.ndarray:
        """See `Memory`."""
        return self.empty(size, _BYTE)

    def take_back(self, memory: np.ndarray) -> None:
        """See `_Owner`."""
        self._free[memory.size].append(memory)

    def _fresh(self, size: int) -> np.ndarray:
        if size > self._slab.size - self._used:
            self._slab = _kept.take(_SLAB + _ALIGNMENT)
            self._used = -self._slab.ctypes.data % _ALIGNMENT
        start, self._used = self._used, self._used + size
        return self._slab[start : self._used]


def _rounded(size: int, bits: int) -> int:
    """Returns a size with few bits set, so that a column's next piece, which is a little larger, fits as well."""
    step = 1 << size.bit_length() - bits
    return -(-size // step) * step


class _Lease:
    """What owns the memory of an array and its views: when the last of them is gone, so is this."""

    def __init__(self, memory: np.ndarray, owner: _Owner) -> None:
        self.__array_interface__ = memory.__array_interface__
        self._memory, self._owner = memory, weakref.ref(owner)

    def __del__(self) -> None:
        if (owner := self._owner()) is not None:
            owner.take_back(self._memory)


_kept = _Kept(_KEPT)
