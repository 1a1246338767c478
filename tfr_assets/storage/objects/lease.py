"""One writer at a time: a lock is an object that is put on condition that there is none, and renewed again and again.

Nobody's clock is trusted. Who finds the lock watches it: if it stays as it is for a whole lease, its holder is gone,
and it is replaced on the condition that it is still the same; if it changes, its holder lives. A holder that could not
renew it in time (its process was stopped, the network was down) no longer writes. No renewal waits so long for an
answer that there would be no time for another.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from tfr_assets.errors import SourceError, TfrError, WriteError
from tfr_assets.storage.objects.folder import ChangedError, ObjectFolder, Version

LEASE = 30.0  # seconds after which a lock that nobody renews is nobody's
_RENEWALS = 3  # in a lease
_LOOKS = 30  # at somebody else's lock, in a lease; and pauses between renewals of which one failed
_ANSWERS = 5  # a renewal waits as small a part of a lease for an answer, so that there is time for another
_SOON = 2.0  # seconds in which any store that is well answers


class HeldError(WriteError):
    """Somebody else holds a lock.

    Attributes:
        holder: Who, as far as that is known.
    """

    holder: str = ""


class Lease:
    """What a writer holds.

    Attributes:
        url: Of the lock.
        seconds: For how long it holds without being renewed.
    """

    def __init__(self, folder: ObjectFolder, key: str, seconds: float, run_id: str = "") -> None:
        """Prepares; see `hold_lease`."""
        self.url, self.seconds = folder.url_of(key), seconds
        self._folder, self._key = folder, key
        self._prompt = replace(folder, patience=max(seconds / _ANSWERS, _SOON))
        self._holder = {"host": socket.gethostname(), "process": os.getpid(), "is": _process(os.getpid())}
        if run_id:
            self._holder["run"] = run_id
        self._number = 0
        self._token = uuid.uuid4().hex
        self._version = Version("", None)
        self._renewed = 0.0
        self._lost: str | None = None
        self._end = threading.Event()

    def check(self) -> None:
        """Makes sure that the lease is still held, before something is made visible.

        Raises:
            WriteError: It is not.
        """
        if self._lost is None and _now() - self._renewed >= self.seconds * 0.8:
            self._lost = f"it was not renewed for {_now() - self._renewed:.0f} s"
        if self._lost is not None:
            raise _lost(self.url, self._lost)

    def take(self) -> None:
        """Takes the lock; waits for one that is nobody's any more.

        Raises:
            HeldError: Somebody else writes there.
            WriteError: The store refused.
        """
        seen: Version | None = None
        since = _now()
        while True:
            started = _now()
            try:
                self._version = self._folder.create(self._key, self._content())
            except ChangedError:
                found = self._folder.get_versioned(self._key)
                if found is None:
                    continue
                holder = _read(found[0])
                if seen and found[1] != seen:
                    raise self._refused(holder) from None
                gone = _is_dead(holder) or (seen and _now() - since >= self.seconds)
                seen = found[1]
                if not gone:
                    time.sleep(self.seconds / _LOOKS)
                    continue
                try:
                    self._version = self._folder.replace(self._key, self._content(), found[1])
                except ChangedError:
                    raise self._refused(holder) from None
            self._renewed = started
            return

    def _refused(self, holder: dict[str, object]) -> HeldError:
        who = _who(holder)
        error = HeldError(f"{self._folder.url}: {who} is writing there and holds {self.url}; run again when it is done")
        error.holder = who
        return error

    def renew(self) -> None:
        """Renews the lock; also after a renewal that the store carried out, but whose answer was lost.

        Raises:
            ChangedError: It is another's by now.
            WriteError, SourceError: The store refused.
        """
        started = _now()
        try:
            self._version = self._prompt.replace(self._key, self._content(), self._version)
        except ChangedError:
            found = self._prompt.get_versioned(self._key)
            if found is None or _read(found[0]).get("token") != self._token:
                raise
            self._version = self._prompt.replace(self._key, self._content(), found[1])
        self._renewed = started

    def keep(self) -> None:
        """Renews the lock until `release`; what a thread does."""
        pause = self.seconds / _RENEWALS
        while not self._end.wait(pause):
            try:
                self.renew()
                pause = self.seconds / _RENEWALS
            except ChangedError:
                self._lost = "another process took it"
                return
            except TfrError:
                pause = self.seconds / _LOOKS  # `check` notices if it lasts

    def release(self) -> None:
        """Removes the lock, if it is still held."""
        self._end.set()
        with suppress(TfrError, ChangedError):  # then it ends by itself, or is another's
            self.check()
            self.renew()  # a store removes without conditions
            self._prompt.delete([self._key])

    def _content(self) -> bytes:
        self._number += 1
        return json.dumps({**self._holder, "token": self._token, "renewal": self._number}).encode()


@contextmanager
def hold_lease(
    folder: ObjectFolder, key: str = ".lock", seconds: float | None = None, run_id: str = ""
) -> Iterator[Lease]:
    """Holds a folder's lock while the block runs, by a thread that renews it.

    A lock whose holder was killed is taken over: at once on the same machine, else after a lease.

    Args:
        folder: The folder.
        key: The lock's.
        seconds: Of the lease; None: `LEASE`.
        run_id: The run that holds it, by which `check_run` knows it; empty: none.

    Raises:
        WriteError: Somebody else writes there, or the store refused.
    """
    lease = Lease(folder, key, LEASE if seconds is None else seconds, run_id)
    lease.take()
    thread = threading.Thread(target=lease.keep, name="tfr-lease", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        lease._end.set()
        thread.join()
        lease.release()


def check_run(folder: ObjectFolder, key: str, run_id: str) -> None:
    """Makes sure, in any process, that a run holds a lock.

    Raises:
        WriteError: It does not, or the store refused.
    """
    try:
        content = folder.get(key)
    except SourceError as error:
        raise WriteError(str(error)) from error
    holder = _read(content or b"")
    if content is None or holder.get("run") != run_id:
        raise _lost(folder.url_of(key), "it is there no more" if content is None else f"{_who(holder)} took it")


def _lost(url: str, why: str) -> WriteError:
    return WriteError(f"{url}: the lock was lost, since {why}; nothing more was made visible. Run again")


def _who(holder: dict[str, object]) -> str:
    return f"process {holder.get('process')} on {holder.get('host')}"


def _now() -> float:
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))  # also counts while suspended


def _machine() -> str:
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _process(pid: int) -> str:
    """Returns what tells a process from all others, of all machines and times; nothing if that is not known."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return f"{_machine()} {pid} {stat.rpartition(')')[2].split()[19]}"


def _is_dead(holder: dict[str, object]) -> bool:
    """Whether a holder is a process of this machine that has ended; False where that is not known."""
    known, pid, machine = str(holder.get("is") or ""), holder.get("process"), _machine()
    if not machine or not known.startswith(machine + " ") or not isinstance(pid, int):
        return False
    return _process(pid) != known


def _read(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
