"""A shuffle that is a function: where the element at a position comes from, without any list of all of them.

A Feistel network on pairs of digits: a number below `a * b` is a pair of one below `a` and one below `b`; in turn, to
each of them a hash of the other is added. Each such step can be undone, so that all together are a permutation. `a` is
the square root of the size, rounded up, and `b` the smallest that suffices; the few numbers of the pairs that lie
beyond the size are permuted on until one lies within it ("cycle walking"), which keeps it a permutation.
"""

import hashlib

import numpy as np

from tfr_assets.records.kernels.jit import address_of, inlined, kernel, load_i64, store_i64

_STEPS = 8


@inlined
def _mixed(value):
    """The finalizer of SplitMix64: every bit of the result depends on every bit of the value."""
    value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return value ^ value >> np.uint64(31)


@inlined
def _added(value, other, key, size):
    """(value + hash of the other) modulo size; both below 2^32."""
    value += (_mixed(key + other) >> np.uint64(32)) * size >> np.uint64(32)
    return value - size if value >= size else value


@kernel("void(int64, int64, int64, int64, uint64)")
def _permute(values, sizes, groups, count, key):
    """Permutes numbers in place, each below its size.

    Args:
        values: Address of int64s.
        sizes: Address of an int64 each.
        groups: Address of an int64 each: which of many permutations of that size.
        count: Number of them.
        key: Which of all families of permutations.
    """
    before = a = b = np.uint64(0)
    for i in range(count):
        size = np.uint64(load_i64(sizes + i * 8))
        value = np.uint64(load_i64(values + i * 8))
        first = _mixed(key + np.uint64(load_i64(groups + i * 8)) * np.uint64(0x9E3779B97F4A7C15))
        if size != before:
            a = np.uint64(np.sqrt(np.float64(size)))
            while a * a < size:
                a += np.uint64(1)
            b, before = (size + a - np.uint64(1)) // a, size
        while True:
            high, low = value // b, value % b
            for step in range(0, _STEPS, 2):
                high = _added(high, low, first + np.uint64(step) * np.uint64(0xD1B54A32D192ED03), a)
                low = _added(low, high, first + np.uint64(step + 1) * np.uint64(0xD1B54A32D192ED03), b)
            value = high * b + low
            if value < size:
                break
        store_i64(values + i * 8, np.int64(value))


def permuted(values: np.ndarray, sizes: int | np.ndarray, groups: int | np.ndarray, key: int) -> np.ndarray:
    """Returns where the permutations of a key take numbers.

    Args:
        values: int64 of shape (n,), each at least 0 and below its size.
        sizes: Number of elements that are permuted, at most 2^62; one for all, or one for each.
        groups: Which permutation of that size; one for all, or one for each.
        key: An integer of 64 bits.

    Returns:
        int64 of shape (n,).
    """
    found = np.array(values, np.int64)
    each = [np.ascontiguousarray(np.broadcast_to(np.asarray(of, np.int64), found.shape)) for of in (sizes, groups)]
    _permute(address_of(found), address_of(each[0]), address_of(each[1]), found.size, np.uint64(key))
    return found


def key_of(*parts: object) -> int:
    """Returns an integer of 64 bits that follows from some values, the same in every process and version."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")
