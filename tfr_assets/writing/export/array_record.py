"""TFRecord files → one ArrayRecord file, from which Grain takes records by number: `ArrayRecordDataSource(TARGET)`.

The records are copied as they are; how they are parsed does not change.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tfr_assets.errors import ConfigError, DamagedFile, WriteError
from tfr_assets.records.frames.compression import Opener, open_file
from tfr_assets.records.frames.manifest import Manifest, manifest_problem
from tfr_assets.records.frames.scan import scan_stream
from tfr_assets.records.kernels.digest import to_text
from tfr_assets.storage.atomic import atomic_file
from tfr_assets.units import MAX_RECORD_BYTES, Advance

_OPTIONS = "group_size:1"  # a record can be had without decompressing its neighbours
_SHOWN = 20  # faults


def export_array_record(
    paths: Iterable[Path], target: Path, progress: Advance | None = None, opener: Opener = open_file
) -> int:
    """Copies all records of TFRecord files, of any compression, into one ArrayRecord file.

    Every CRC is checked on the way, and a file that has a manifest is compared with it.

    Args:
        paths: The files, in order.
        target: Name of the ArrayRecord file, such as `flights-train.array_record`.
        progress: Called with the number of records just copied.
        opener: Opens the files.

    Returns:
        Number of records.

    Raises:
        ConfigError: The package `array_record` is not installed.
        DamagedFile: A file is gone, damaged, or not what its manifest says.
        WriteError: The file system refused. In every case, what lay under the target's name is as it was.
    """
    try:
        from array_record.python.array_record_module import ArrayRecordWriter
    except ImportError as error:
        raise ConfigError(
            f"cannot write {target}: the package `array_record` is not installed; add it with "
            "`pip install array-record`"
        ) from error
    with atomic_file(target) as descriptor:
        with _writing(target):
            writer = ArrayRecordWriter(f"/proc/self/fd/{descriptor}", _OPTIONS)  # it takes names only
        records = sum(_copy(path, writer, target, progress, opener) for path in paths)
        with _writing(target):
            writer.close()
    return records


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # of whatever goes wrong in the writer, which reports most when it is closed
        raise WriteError(
            f"cannot write {target}: {error}. Free space or fix the permissions, then run again"
        ) from error


def _copy(path: Path, writer: Any, target: Path, progress: Advance | None, opener: Opener) -> int:
    def visit(buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        view = buffer.data
        with _writing(target):
            for start, size, _ in frames.tolist():
                writer.write(bytes(view[start : start + size]))
        if progress:
            progress(len(frames))

    manifest = Manifest.load(path)
    if problem := manifest_problem(path):
        raise DamagedFile(f"cannot export {path}: its manifest is invalid: {problem}; write it again")
    longest = manifest.max_record_bytes if manifest else MAX_RECORD_BYTES
    try:
        with opener(path) as opened:
            scan = scan_stream(opened.stream, path, visit, max_faults=_SHOWN, max_record_bytes=longest)
    except OSError as error:
        raise DamagedFile(f"cannot export {path}: {error.strerror or error}; write it again") from error
    faults = [str(fault) for fault in scan.faults]
    if manifest and not faults and (scan.records, to_text(scan.digest)) != (manifest.records, manifest.digest):
        faults.append(f"{path}: {scan.records} records, its manifest says {manifest.records}")
    if faults:
        raise DamagedFile(f"cannot export {path}; write it again:\n" + "\n".join(f"  {fault}" for fault in faults))
    return scan.records
