"""Memory that encoders write into, used again and again: fresh pages cost more than what is written into them."""

from typing import Protocol

import numpy as np


class Memory(Protocol):
    """Where an encoder gets its output's memory."""

    def take(self, size: int) -> np.ndarray:
        """Returns at least so many bytes, uint8, in memory of its own."""


class Buffer:
    """One buffer. What is taken next overwrites what was taken before."""

    def __init__(self, size: int) -> None:
        """Prepares so many bytes."""
        self._memory = np.empty(size, np.uint8)

    def take(self, size: int) -> np.ndarray:
        """See `Memory`."""
        if size > self._memory.size:
            self._memory = np.empty(size, np.uint8)
        return self._memory


class Buffers:
    """As many buffers as are in use at a time, by any threads: each is its taker's until it is given back."""

    def __init__(self, size: int) -> None:
        """Prepares for buffers of at least so many bytes."""
        self._size = size
        self._free: list[np.ndarray] = []

    def take(self, size: int) -> np.ndarray:
        """See `Memory`."""
        try:
            memory = self._free.pop()
        except IndexError:
            memory = np.empty(max(self._size, size), np.uint8)
        return memory if len(memory) >= size else np.empty(size + size // 8, np.uint8)

    def give_back(self, data: memoryview) -> None:
        """Takes back the buffer that `data` is the beginning of."""
        beginning = data.obj
        assert isinstance(beginning, np.ndarray) and isinstance(beginning.base, np.ndarray)
        self._free.append(beginning.base)
