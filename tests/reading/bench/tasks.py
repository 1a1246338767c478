"""What the tests let fresh processes do."""

import os
import subprocess
import time
from pathlib import Path


def open_files(folder: str, count: int) -> int:
    """Has that many files open for a while."""
    files = [(Path(folder) / str(number)).open("w") for number in range(count)]
    time.sleep(0.2)
    return len(files)


def take_memory(megabytes: int) -> int:
    """Uses that much memory for a while."""
    content = os.urandom(1 << 20) * megabytes
    time.sleep(0.2)
    return len(content)


def wait_with_a_child(path: str) -> None:
    """Starts a child, tells the ids of both, and waits for ever."""
    child = subprocess.Popen(["sleep", "1000"])
    Path(path).with_suffix(".part").write_text(f"{os.getpid()} {child.pid}")
    Path(path).with_suffix(".part").rename(path)
    time.sleep(1000)
