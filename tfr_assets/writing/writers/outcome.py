"""What happened to the shards, as reported by the threads that write them."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tfr_assets.errors import TfrError, WriteError
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.units import Advance

_MOST_LINES = 20


class NothingLeftError(Exception):
    """No shard is left that could be written. It ends a writer early, and is never seen outside."""


class Report(Protocol):
    """Called by writers, from any thread."""

    def wrote(self, records: int) -> None:
        """So many records more were written."""

    def finished(self, shard: int, manifest: Manifest) -> None:
        """A shard has its final name."""

    def failed(self, shard: int, error: TfrError) -> None:
        """A shard cannot be written; the others may be.

        Raises:
            NothingLeftError: All have failed, so that going on is useless.
        """


class Outcome:
    """Gathers what is reported.

    Attributes:
        manifests: Of the shards that were written.
        errors: Of those that were not.
    """

    def __init__(self, paths: Sequence[Path], progress: Advance | None = None, where: str | None = None) -> None:
        """Prepares.

        Args:
            paths: The shards.
            progress: Called with records just written, by one thread at a time.
            where: What messages call their folder, if that is elsewhere.
        """
        self.manifests: dict[int, Manifest] = {}
        self.errors: dict[int, TfrError] = {}
        self._paths, self._progress = paths, progress
        self._where = where or str(paths[0].parent)
        self._lock = threading.Lock()

    def wrote(self, records: int) -> None:
        """See `Report`."""
        if self._progress:
            with self._lock:
                self._progress(records)

    def finished(self, shard: int, manifest: Manifest) -> None:
        """See `Report`."""
        with self._lock:
            self.manifests[shard] = manifest

    def failed(self, shard: int, error: TfrError) -> None:
        """See `Report`."""
        with self._lock:
            self.errors[shard] = error
            if len(self.errors) == len(self._paths):
                raise NothingLeftError

    def check(self) -> None:
        """Raises what went wrong, if anything did.

        Raises:
            TfrError: Of the only shard; WriteError, which lists all that failed, where there are several shards.
        """
        if not self.errors:
            return
        first = self.errors[min(self.errors)]
        if len(self._paths) == 1:
            raise first
        lines = [f"  {self._paths[shard].name}: {self.errors[shard]}" for shard in sorted(self.errors)]
        more = [f"  … and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
        others = "; the others are whole" if len(lines) < len(self._paths) else ""
        raise WriteError(
            f"{len(lines)} of {len(self._paths)} shards in {self._where} could not be written{others}. "
            "Nothing was left under these names, or what lay there before:\n" + "\n".join(lines[:_MOST_LINES] + more)
        ) from first
