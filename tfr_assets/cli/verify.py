"""Finds TFRecord files and examines them, several at a time: the kernels run without the GIL."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from tfr_assets.cli.terminal import bytes_bar
from tfr_assets.layout import manifest_path
from tfr_assets.records.manifest import Manifest
from tfr_assets.records.report import FileReport, examine
from tfr_assets.records.scan import Fault, FaultKind

_NAME_PARTS = (".tfrecord", ".tfr")
_OURS = {"index", "manifest"}


def find_files(paths: Iterable[Path]) -> list[Path]:
    """Returns the files that are meant: a file as it is; of a folder, whatever looks like TFRecord, at any depth.

    A file that only its manifest knows of is among them, so that it is reported as missing.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            found[path] = None
            continue
        for folder, folders, names in os.walk(path):
            here = Path(folder)
            promised = {file.stem for file in (here / "manifest").glob("*.json")}
            if promised:
                folders[:] = [name for name in folders if name not in _OURS]
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(promised.union(name for name in names if _looks_like_one(name))):
                found[here / name] = None
    return list(found)


def _looks_like_one(name: str) -> bool:
    lower = name.lower()
    return (
        not lower.startswith(".")
        and any(part in lower for part in _NAME_PARTS)
        and not lower.endswith((".json", ".idx"))
    )


def verify_files(files: Sequence[Path], quiet: bool = False, max_record_bytes: int | None = None) -> list[FileReport]:
    """Examines files, each against its manifest if it has one.

    Args:
        files: The files.
        quiet: Show no progress.
        max_record_bytes: As `examine` takes it.
    """
    manifests = [Manifest.load(file) for file in files]
    total = sum(file.stat().st_size for file in files if file.is_file())
    with nullcontext(None) if quiet else bytes_bar("verifying", total) as progress:

        def one(file: Path, manifest: Manifest | None) -> FileReport:
            report = examine(file, manifest, manifest.features if manifest else None, progress, max_record_bytes)
            if manifest or not manifest_path(file).exists():
                return report
            unreadable = Fault(str(manifest_path(file)), 0, 0, FaultKind.MANIFEST, "write the file again")
            return replace(report, faults=(*report.faults, unreadable), fault_count=report.fault_count + 1)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(one, files, manifests))
