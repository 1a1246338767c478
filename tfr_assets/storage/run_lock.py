"""One at a time in a folder: a lock of the kernel on this machine, a lease where the folder lies in a store."""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tfr_assets.storage.locks import hold_lock, lock, unlock
from tfr_assets.storage.mirror import catch_up
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.lease import HeldError, hold_lease
from tfr_assets.storage.objects.multipart import abort_uploads
from tfr_assets.storage.objects.store import store_of
from tfr_assets.urls import url_of

_SHORT = ".short.lock"  # beside the lock of a run, which is held for long
_POLL_SECONDS = 0.2
_OF_ONE = r"(?!slices/).*"  # keys of what a run works on: a slice's are those of another run


@dataclass(frozen=True)
class Held:
    """A lock that is held.

    Attributes:
        release: Ends it.
        check: Makes sure that it is held still; raises a WriteError if it is not.
    """

    release: Callable[[], None]
    check: Callable[[], None]


def try_lock(path: Path, run_id: str) -> Held | str:
    """Locks a folder for a run, or returns who holds the lock.

    Where it lies in a store, uploads that a killed run has left there are ended.

    Args:
        path: The file that is locked; its folder is made.
        run_id: The run.

    Raises:
        OSError: It cannot be written, or its file system has no locks.
        WriteError: The store refused.
        ConfigError: It cannot be opened as it is configured.
    """
    if url := url_of(path.parent):
        return _lease(ObjectFolder(url), path.name, run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = lock(path, wait=False)
    if file is None:
        return _holder(path)
    with suppress(OSError):  # it only serves the message; the disk may be full
        os.pwrite(file, run_id.encode(), 0)
    return Held(partial(unlock, file), lambda: None)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder while the block runs, and waits for it; what others have written there is seen then.

    Args:
        folder: It is there, or stands in for what lies in a store.

    Raises:
        OSError: It cannot be locked.
        WriteError, SourceError: The store refused.
        ConfigError: It cannot be opened as it is configured.
    """
    url = url_of(folder)
    if url is None:
        with hold_lock(folder):
            yield
        return
    with ExitStack() as held:
        while True:
            try:
                lease = held.enter_context(hold_lease(ObjectFolder(url), _SHORT))
                break
            except HeldError:
                time.sleep(_POLL_SECONDS)
        catch_up(folder)
        yield
        lease.check()


def _lease(folder: ObjectFolder, key: str, run_id: str) -> Held | str:
    store_of(folder.bucket)  # says what to install
    held = ExitStack()
    try:
        lease = held.enter_context(hold_lease(folder, key, run_id=run_id))
    except HeldError as error:
        return error.holder
    with ExitStack() as unless_done:
        unless_done.callback(held.close)
        abort_uploads(folder, _OF_ONE)
        unless_done.pop_all()
    return Held(held.close, lease.check)


def _holder(path: Path) -> str:
    with suppress(OSError):
        if run_id := re.match(rb"[0-9a-f]{8}(?=-)", path.read_bytes()):  # it may be empty or damaged
            return f"run {run_id[0].decode()}"
    return "another run"
