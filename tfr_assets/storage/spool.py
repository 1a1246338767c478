"""A folder among the temporary files, for what is on its way to or from elsewhere."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfr_assets.storage.atomic import refusals
from tfr_assets.storage.locks import make_locked_folder, remove_abandoned_folders, remove_locked_folder

_SPOOL = "tfr-spool-"


@contextmanager
def open_spool() -> Iterator[Path]:
    """Makes a folder, which goes after the block; those of killed processes go before.

    Raises:
        WriteError: The file system refused.
    """
    parent = Path(tempfile.gettempdir())
    with refusals(parent):
        remove_abandoned_folders(parent, _SPOOL)
        descriptor, folder = make_locked_folder(parent, _SPOOL)
    try:
        yield folder
    finally:
        remove_locked_folder(descriptor, folder)
