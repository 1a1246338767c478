"""What a step of a run makes visible: only while its run holds the lock of what it works on.

The run renews its lock in a process of its own, maybe on another machine, and sees only in a while that another run
took it. So the steps look by themselves, each time before something of theirs appears in the store or goes from it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.lease import check_run

_guarded: list[tuple[str, str, str]] = []  # URL of a folder, key of the lock in it, and the run; of this process


@contextmanager
def only_while_held(url: str, key: str, run_id: str) -> Iterator[None]:
    """Has this process make nothing visible below a URL, while the block runs, unless a run holds the lock there.

    Args:
        url: Of the folder.
        key: Of the lock in it.
        run_id: The run that took it.
    """
    guarded = (url, key, run_id)
    _guarded.append(guarded)
    try:
        yield
    finally:
        _guarded.remove(guarded)  # or its equal: steps may be threads of one process


def check_held(url: str) -> None:
    """Makes sure, before something becomes visible under a URL, that the run still holds the lock, if it needs one.

    Raises:
        WriteError: It does not, or the store refused.
    """
    for folder, key, run_id in set(_guarded):  # a step may have it guarded twice, and asks once
        if url == folder or url.startswith(f"{folder}/"):
            check_run(ObjectFolder(folder), key, run_id)
