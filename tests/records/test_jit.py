"""Compiled kernels on disk are never older than the sources they were made from."""

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path

import tfr_assets

from .reference import FOO_BAR


def test_an_edited_callee_invalidates_its_callers_in_other_files(tmp_path: Path) -> None:
    package = Path(tfr_assets.__file__).parent
    copy = tmp_path / "tfr_assets"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", "components", "cli", "bench"))
    (tmp_path / "file").write_bytes(base64.b64decode(FOO_BAR))

    def scan() -> str:
        script = """
from tfr_assets.records.frames import scan
from tfr_assets.records.frames.compression import open_input
with open("file", "rb") as file:
    found = scan.scan_stream(open_input(file.fileno(), "none"), "file")
print(found.records, [fault.kind.value for fault in found.faults], sum(scan._scan.stats.cache_hits.values()))
"""
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert scan() == "2 [] 0"
    assert scan() == "2 [] 1"  # from the cache
    # the scanner's kernel lies in another file than the mask, and that file stays as it is
    crc = copy / "records" / "kernels" / "crc32c.py"
    crc.write_text(crc.read_text().replace("0xA282EAD8", "0xA282EAD9"))
    assert scan() == "0 ['length CRC is wrong'] 0"
