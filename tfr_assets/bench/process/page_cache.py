"""The page cache: files out of it, and how fast their bytes can be read at all."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.request import urlopen

from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.objects.ranges import chunks_of
from tfr_assets.urls import is_object_url

_CHUNK = 4 << 20


def drop_pages(paths: Iterable[str]) -> None:
    """Takes files out of the page cache, so that their next reading comes from the disk. Needs no special right.

    Only pages that are on the disk can be dropped, so the files are flushed first. Files that are not local (URLs) have
    no pages here.
    """
    for path in paths:
        if is_remote(path):
            continue
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def seconds_of_plain_reading(paths: Iterable[str]) -> float:
    """Returns how long it takes to read files, or what URLs answer, one after another from beginning to end."""
    buffer = bytearray(_CHUNK)
    started = time.perf_counter()
    for path in paths:
        if is_object_url(path):
            for _ in chunks_of(path):
                pass
            continue
        with urlopen(path) if is_remote(path) else Path(path).open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - started
