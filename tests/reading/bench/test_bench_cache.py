"""Whether a file is in the page cache, as the kernel says."""

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from tfr_assets.bench.process.page_cache import drop_pages, seconds_of_plain_reading

PAGES = 64


def resident(path: Path) -> int:
    """Number of a file's pages in the cache, by mincore(2)."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        seen = (ctypes.c_ubyte * PAGES)()
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        assert (
            ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(start), ctypes.c_size_t(len(mapped)), seen) == 0
        )
        return sum(page & 1 for page in seen)


def test_a_file_leaves_the_cache_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(PAGES * mmap.PAGESIZE))
    assert resident(path) == PAGES  # just written, and not even on the disk
    drop_pages([str(path)])
    if resident(path) == PAGES:
        pytest.skip("this file system lives in memory")
    assert resident(path) == 0
    assert seconds_of_plain_reading([str(path)]) > 0
    assert resident(path) == PAGES
