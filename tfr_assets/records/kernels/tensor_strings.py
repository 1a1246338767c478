"""Strings as TensorFlow has them in memory, made where records are decoded: nothing copies them once more.

A string is three words, a `TF_TString` of tensorflow/core/platform/ctstring_internal.h:

    up to 22 bytes    size × 4, the bytes, a zero
    longer            size × 4 + 1 | bytes that there is room for | address of the bytes, and of a zero after them

The lowest two bits tell what it is. Memory of a long one is from `malloc`, and belongs to whom the three words belong.
"""

import numpy as np
from numba import types

from tfr_assets.records.kernels.jit import (
    PADDING,
    address_of,
    copy_32,
    copy_bytes,
    inlined,
    kernel,
    load_i64,
    store_i64,
    store_u8,
)

STRING_SIZE = 24
SHORT = 22
"""Bytes of the longest string that lies in the three words themselves."""
_LONG = 1  # in the lowest two bits

_malloc = types.ExternalFunction("malloc", types.int64(types.int64))
_free = types.ExternalFunction("free", types.void(types.int64))


@inlined
def put_long_string(target, start, size):
    """Makes a string of more than SHORT bytes, as `put_string` does, but runs over nothing."""
    room = (size + 16) & ~np.int64(15)
    place = _malloc(room)
    if place == 0:
        store_i64(target, 0)
        return False
    copy_bytes(place, start, size)
    store_u8(place + size, np.uint8(0))
    store_i64(target, size << 2 | _LONG)
    store_i64(target + 8, room - 1)
    store_i64(target + 16, place)
    return True


@inlined
def put_string(target, start, size):
    """Makes a string; returns whether there was memory for it. Otherwise, it is empty.

    Args:
        target: Address of its three words, and of 16 bytes more: the next string, which becomes empty.
        start: Address of the bytes; up to 32 must be readable.
        size: Number of bytes.
    """
    if size <= SHORT:
        copy_32(target + 1, start)
        store_u8(target, np.uint8(size << 2))
        store_u8(target + 1 + size, np.uint8(0))
        store_i64(target + STRING_SIZE, 0)  # was run over
        return True
    return put_long_string(target, start, size)


@inlined
def take_strings(places, count, target):
    """Moves strings, given by their addresses, behind each other; what is left is empty."""
    for i in range(count):
        source = load_i64(places + i * 8)
        for word in range(0, STRING_SIZE, 8):
            store_i64(target + i * STRING_SIZE + word, load_i64(source + word))
        store_i64(source, 0)


@kernel("void(int64, int64)")
def _release(strings, count):
    """Frees the memory of consecutive strings, which are empty then."""
    for i in range(count):
        place = strings + i * STRING_SIZE
        if load_i64(place) & 3 == _LONG:
            _free(load_i64(place + 16))
        store_i64(place, 0)


class StringSlots:
    """Memory for so many strings, empty at first, which it owns until somebody takes them.

    Attributes:
        count: How many.
    """

    count = 0
    _words = np.empty(0, np.uint8)

    def __init__(self, count: int) -> None:
        self._words = np.zeros(count * STRING_SIZE + PADDING, np.uint8)  # there may be no memory, and then no strings
        self.count = count

    @property
    def address(self) -> int:
        """Where the first one lies."""
        return address_of(self._words)

    def places(self, count: int) -> np.ndarray:
        """Returns where each of the first ones lies, int64."""
        return self.address + STRING_SIZE * np.arange(count, dtype=np.int64)

    def grow(self, count: int) -> "StringSlots":
        """Returns memory for more strings, with all that are here; here, none is left."""
        larger = StringSlots(count)
        used = self.count * STRING_SIZE
        larger._words[:used] = self._words[:used]
        self._words[:used] = 0
        return larger

    def release(self, first: int = 0) -> None:
        """Makes the strings from `first` on empty, and frees their memory."""
        _release(self.address + first * STRING_SIZE, self.count - first)

    def __del__(self) -> None:
        self.release()
