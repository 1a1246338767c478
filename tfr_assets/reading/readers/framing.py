"""A range of a file → its records, by the project's own strict scan: faults are reported precisely, or skipped.

It serves where TensorFlow's reader cannot: files of remote storage, files with damage to skip, and processes that
have no TensorFlow. It imports none itself.
"""

from collections.abc import Callable, Iterator

import numpy as np

from tfr_assets.errors import DamagedFile
from tfr_assets.reading.native.streams import open_range
from tfr_assets.records.frames.scan import Fault
from tfr_assets.records.frames.segments import Range, ends, read_segment
from tfr_assets.records.frames.skipped import Skipped, describe_faults


def range_records(wanted: Range, skipped: Callable[[Skipped], None] | None = None) -> Iterator[np.ndarray]:
    """Yields the records of a range, about a megabyte of them at a time.

    Args:
        wanted: What to read.
        skipped: Called with what was left out, and the intact records are still given. None: a fault is an error.

    Yields:
        Arrays of `bytes` objects, of shape (n,).

    Raises:
        StaleError: The file is not the one whose manifest was opened.
        DamagedFile: A local file cannot be read; or there is a fault, and `skipped` is None, or so many that nothing
            proves the rest to be right.
        SourceError: A remote file cannot be read.
    """
    given = 0
    faults: list[Fault] = []
    blocks: list[np.ndarray] = []

    def visit(buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        taken = frames[(frames[:, 2] >= wanted.first) & (frames[:, 2] < wanted.stop)]
        if len(taken):
            view = buffer.data
            blocks.append(strings([bytes(view[start : start + size]) for start, size in taken[:, :2].tolist()]))

    with open_range(wanted) as stream:
        for segment in wanted.segments:
            found = read_segment(stream, wanted, segment, visit, skip=skipped is not None)
            faults += found
            for block in blocks:
                given += len(block)
                yield block
            blocks.clear()
            if ends(found):
                break
    if skipped is not None:
        skipped(Skipped(wanted.records - given, tuple(faults)))
    elif given < wanted.records or (faults and wanted.whole):
        raise DamagedFile(describe_faults(faults))


def strings(records: list[bytes]) -> np.ndarray:
    """Returns an array of `bytes` objects."""
    array = np.empty(len(records), object)  # filled, not converted: NumPy would drop zeros at the end of bytes
    array[:] = records
    return array
