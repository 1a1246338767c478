"""How much memory a process has from `malloc`."""

import ctypes
import gc
from collections.abc import Callable

import pytest


class _Counts(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]


def check_freed(run: Callable[[], object], most: int) -> None:
    """Makes sure that a repetition leaves no more bytes than the first time did: buffers that are used again."""
    counts = []
    for _ in range(4):
        run()
        counts.append(in_use())
    assert counts[-1] < counts[0] + most


def in_use() -> int:
    """Returns how many bytes this process has."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("needs glibc 2.33, which counts")
    libc.mallinfo2.restype = _Counts
    gc.collect()
    counts = libc.mallinfo2()
    return int(counts.uordblks + counts.hblkhd)
