"""Remote files as local descriptors: a thread copies what comes into a pipe, which bounds how far it runs ahead."""

import atexit
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from tfr_assets.errors import SourceChanged, SourceError, TfrError
from tfr_assets.storage.atomic import write_all
from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.objects.ranges import chunks_of
from tfr_assets.storage.objects.store import is_reached
from tfr_assets.storage.raw_files import RawFile

_PIPE_BYTES = 1 << 20  # what an unprivileged user may have


def has_ranges(path: str) -> bool:
    """Whether a part of a file can be read without those before it: of local ones, and of object stores."""
    return not is_remote(path) or is_reached(path)


@contextmanager
def open_piped(url: str, size: int, start: int = 0, stop: int | None = None) -> Iterator[int]:
    """Opens a remote file of a known size for reading from one end of a part to the other.

    Of object stores, several blocks are fetched at once, all of one version. Whatever else fsspec knows is read as one
    stream: no request a block, and none to ask how large it is.

    Args:
        url: The file.
        size: Its bytes.
        start: The first byte; 0, unless it `has_ranges`.
        stop: The one behind the last; None: its end.

    Yields:
        A descriptor to read from; it cannot be sought in.

    Raises:
        SourceError: The store failed; after the block, if it has read all that came, or needed more.
    """
    read_end, write_end = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    chunks = chunks_of(url, start, stop) if is_reached(url) else RawFile(url, "tfrecord").chunks(size)
    failures: list[TfrError] = []

    def end() -> None:
        if thread.is_alive():
            with Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), write_end)  # what reads from the pipe sees its end

    thread = Thread(target=_copy, args=(url, chunks, write_end, failures), name=f"read {url}", daemon=True)
    thread.start()
    atexit.register(end)  # Python's threads stop afterwards: waiting for them would take for ever
    try:
        try:
            yield read_end
        finally:
            if atexit is not None:  # at the interpreter's end, modules' names are gone
                atexit.unregister(end)
            os.close(read_end)  # the copying ends with its next write
    except TfrError as error:
        thread.join()
        if failures:
            raise failures[0] from error  # what was found to be lacking is what the store did not give
        raise
    thread.join()
    if failures:
        raise failures[0]


def _copy(url: str, chunks: Iterator[bytes | memoryview], descriptor: int, failures: list[TfrError]) -> None:
    try:
        with suppress(BrokenPipeError):  # the reader has closed it
            for chunk in chunks:
                write_all(descriptor, chunk)
    except SourceChanged:  # whose message is for writers of a dataset
        failures.append(SourceError(f"{url}: is no longer there; have it put back, or locate the files again"))
    except TfrError as error:
        failures.append(error)
    finally:
        os.close(descriptor)
