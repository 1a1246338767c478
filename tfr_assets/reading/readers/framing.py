"""A piece of a file → its records, by the project's own strict scan: faults are told precisely, or stepped over.

It serves where TensorFlow's reader cannot: files of remote storage, files with damage to pass over, and processes that
have no TensorFlow. It imports none itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tfr_assets.errors import DamagedFile
from tfr_assets.reading.readers.pieces import Piece
from tfr_assets.reading.streams import opened
from tfr_assets.records.manifest import Manifest
from tfr_assets.records.report import examine
from tfr_assets.records.scan import Fault, FaultKind, scan_blocks
from tfr_assets.records.skipped import Skipped, told


def piece_records(
    piece: Piece, compression: str, skipped: Callable[[Skipped], None] | None = None
) -> Iterator[np.ndarray]:
    """Yields the records of a piece, about a megabyte of them at a time.

    Args:
        piece: What to read.
        compression: That of its file.
        skipped: Is told what was left out, and the intact records are given all the same. None: a fault is an error.

    Yields:
        Arrays of `bytes` objects, of shape (n,).

    Raises:
        DamagedFile: A local file cannot be read; or there is a fault, and `skipped` is None.
        SourceError: A remote file cannot be read.
    """
    given = 0
    with opened(piece.path, compression, piece.start, piece.stop) as stream:
        blocks = scan_blocks(stream, piece.path, max_record_bytes=piece.max_record_bytes)
        while True:
            try:
                buffer, frames, _ = next(blocks)
            except StopIteration as end:
                faults = [_moved(fault, piece) for fault in end.value.faults]
                break
            taken = frames[(frames[:, 2] >= piece.skip) & (frames[:, 2] < piece.skip + piece.records)]
            given += len(taken)
            if len(taken):
                view = buffer.data
                yield strings([bytes(view[start : start + size]) for start, size in taken[:, :2].tolist()])
            if given == piece.records and not piece.whole:
                return
    if given < piece.records and not faults:
        detail = f"found {given}, the manifest says {piece.records}"
        faults = [Fault(piece.path, piece.first + given, piece.stop, FaultKind.COUNT, detail)]
    if skipped is not None:
        skipped(Skipped(piece.records - given, tuple(faults)))
    elif faults:
        raise DamagedFile(told(faults))


def verify_piece(piece: Piece, compression: str) -> str:
    """Returns what is wrong with a piece and what to do, or nothing.

    A whole file is held against its manifest; of a part, every CRC is checked.
    """
    if piece.whole or compression != "none":
        path = Path(piece.path)
        report = examine(path, Manifest.load(path), max_record_bytes=piece.max_record_bytes)
        return told(report.faults)
    with opened(piece.path, compression, piece.start, piece.stop) as stream:
        blocks = scan_blocks(stream, piece.path, max_record_bytes=piece.max_record_bytes)
        while True:
            try:
                next(blocks)
            except StopIteration as end:
                return told([_moved(fault, piece) for fault in end.value.faults])


def strings(records: list[bytes]) -> np.ndarray:
    """Returns an array of `bytes` objects."""
    array = np.empty(len(records), object)  # filled, not converted: NumPy would drop zeros at the end of bytes
    array[:] = records
    return array


def _moved(fault: Fault, piece: Piece) -> Fault:
    """Returns a fault of a part as one of its file."""
    return replace(fault, record=fault.record + piece.first, offset=fault.offset + piece.start)
