"""What `write` left on the disk, and what it left running."""

import contextlib
import os
import threading
import time
from pathlib import Path

from tests.records.reference import payloads_of
from tfr_assets.writing.write import Written


def payloads(written: Written) -> list[list[bytes]]:
    """The records of each file."""
    return [payloads_of(path.read_bytes()) for path in written.paths]


def names(folder: Path) -> set[str]:
    """All files below a folder, hidden and temporary ones too."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def expected_names(*files: str) -> set[str]:
    """What there is where these TFRecord files are whole."""
    return {name for file in files for name in (file, f"index/{file}.idx", f"manifest/{file}.json")}


def children_of(parent: int) -> list[int]:
    """Processes that a process has started, and that have not been waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:  # it has ended meanwhile
                continue
            if int(status.rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
    return found


def marked(mark: str) -> list[int]:
    """Running processes with a text in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in environment:
                found.append(int(entry.name))
    return found


def nobody_is_left(mark: str, seconds: float = 15) -> bool:
    """Whether all marked processes are gone, at the latest after some seconds."""
    deadline = time.monotonic() + seconds
    while marked(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def own_threads() -> list[str]:
    """Threads that writers have started and that still run."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("tfr-")]


def own_children() -> list[int]:
    """Processes that writers have started and that still run; other tests may have started others."""
    found = []
    for child in children_of(os.getpid()):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if b"from tfr_assets." in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return found
