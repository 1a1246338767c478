"""Merges TFRecord files into one by copying bytes: records are framed one by one, so files are simply joined.

gzip members may be joined, too. zlib streams may not (TensorFlow reads the first and drops the rest), so these are
decompressed and compressed again as one stream. No record is decoded in any case.
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfr_assets.errors import DamagedFile
from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.frames.compression import COMPRESSIONS, Compressor, StreamFault, open_input
from tfr_assets.records.frames.examine import examine_open
from tfr_assets.records.frames.index import index_lines, read_sizes
from tfr_assets.records.frames.manifest import FRAMING, IndexChecksum, Manifest
from tfr_assets.records.frames.marks import join_marks
from tfr_assets.records.kernels.crc32c import crc32c
from tfr_assets.records.kernels.digest import to_text
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.storage.atomic import atomic_file, remove_durably, settle, write_all
from tfr_assets.units import Advance

_STEP = 64 << 20  # bytes per call, so that progress can be shown
_BUFFER = 1 << 20
_SHOWN = 20  # faults


def merge_files(
    inputs: Sequence[tuple[Path, Manifest]],
    target: Path,
    features: FeatureSpec | None = None,
    made_from: dict[str, Any] | None = None,
    progress: Advance | None = None,
) -> Manifest:
    """Joins files in the given order into `target`, with index and manifest.

    What the result must hold follows from the manifests. It is read back and compared with them before it takes its
    name.

    Args:
        inputs: Files and their manifests, all of one compression. They are copied unread: verify them before.
        target: Final name.
        features: How the records are parsed, for the manifest.
        made_from: What determines the content, for the manifest.
        progress: Called with the number of bytes just copied.

    Raises:
        WriteError: The file system refused; what was there before is untouched.
        DamagedFile: An input is gone or not what its manifest says, or the inputs differ in compression; what was
            there before is untouched.
    """
    compressions = {manifest.compression for _, manifest in inputs}
    if len(compressions) > 1:
        found = ", ".join(sorted(compressions))
        raise DamagedFile(f"cannot merge files of different compressions ({found}) into {target}")
    compression = compressions.pop() if compressions else "none"
    with atomic_file(index_path(target)) as index, atomic_file(target) as data:
        checksum = join_indexes(inputs, index)
        if COMPRESSIONS[compression].concatenates:
            # TensorFlow takes an empty gzip member for the end of the file
            for path, manifest in [item for item in inputs if item[1].records] or inputs[:1]:
                _append(path, manifest.bytes, data, progress)
        else:
            _recompress([path for path, _ in inputs], compression, data, progress)
        merged = merged_manifest(inputs, target.name, os.fstat(data).st_size, checksum, features, made_from)
        settle(data)
        report = examine_open(data, target, merged)  # before it takes the place of what was there
        if not report.ok:
            faults = "\n".join(f"  {fault}" for fault in report.faults[:_SHOWN])
            raise DamagedFile(f"what was copied into {target} is not what its inputs' manifests say:\n{faults}")
        remove_durably(manifest_path(target))
    merged.save(target)
    return merged


def merged_manifest(
    inputs: Sequence[tuple[Path, Manifest]],
    name: str,
    size: int,
    index: IndexChecksum,
    features: FeatureSpec | None = None,
    made_from: dict[str, Any] | None = None,
) -> Manifest:
    """Returns what a file must hold that others are joined to.

    Args:
        inputs: Those files and their manifests.
        name: The file's name.
        size: Its bytes.
        index: Of its index.
        features: As for `merge_files`.
        made_from: As for `merge_files`.
    """
    *marks, end = join_marks(manifest for _, manifest in inputs)
    return Manifest(
        file=name,
        records=end.records,
        bytes=size,
        payload_bytes=end.bytes - FRAMING * end.records,
        compression=inputs[0][1].compression if inputs else "none",
        digest=to_text(end.digest),
        features=features,
        made_from=made_from or {},
        marks=tuple(marks),
        index=index,
    )


def join_indexes(inputs: Sequence[tuple[Path, Manifest]], target: int) -> IndexChecksum:
    """Writes the indexes of files that are joined, each compared with its manifest, as one.

    Raises:
        DamagedFile: One is missing, or not what its manifest says.
        OSError: The file system refused.
    """
    offset = size = crc = 0
    for path, manifest in inputs:
        try:
            for sizes in read_sizes(index_path(path), manifest.records, manifest.payload_bytes, manifest.index):
                lines = index_lines(sizes, offset)
                write_all(target, lines)
                offset += int(sizes.sum())
                size, crc = size + len(lines), crc32c(lines, crc)
        except (FileNotFoundError, ValueError) as error:
            raise DamagedFile(
                f"cannot merge {path}: its index {index_path(path)} is missing or damaged; write it again"
            ) from error
    return IndexChecksum(size, crc)


def _append(path: Path, size: int, target: int, progress: Advance | None) -> None:
    """Appends exactly `size` bytes of a file, inside the kernel where it can."""
    try:
        opened = path.open("rb", buffering=0)
    except FileNotFoundError as error:
        raise DamagedFile(f"cannot merge {path}: it is gone; write it again") from error
    with opened as source:
        left = size
        while left:
            done = copy_range(source.fileno(), target, min(left, _STEP))
            if done == 0:
                raise DamagedFile(f"{path} ends {left} bytes early; verify it and write it again")
            left -= done
            if progress:
                progress(done)


def copy_range(source: int, target: int, count: int) -> int:
    """Copies up to `count` bytes between open files, from position to position.

    Uses `copy_file_range`, which shares blocks or copies inside the kernel, and plain reading and writing where the
    system or the pair of file systems has no such thing.

    Returns:
        Number of bytes copied; 0 at the end.
    """
    try:
        return os.copy_file_range(source, target, count)
    except AttributeError:  # not Linux
        pass
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ETXTBSY):
            raise
    chunk = os.read(source, min(count, _BUFFER))
    write_all(target, chunk)
    return len(chunk)


def _recompress(paths: Sequence[Path], compression: str, target: int, progress: Advance | None) -> None:
    compressor = Compressor(compression)
    buffer = memoryview(bytearray(_BUFFER))
    for path in paths:
        with path.open("rb", buffering=0) as source:
            stream = open_input(source.fileno(), compression)
            try:
                while got := stream.read_into(buffer):
                    write_all(target, compressor.feed(buffer[:got]))
            except StreamFault as fault:
                raise DamagedFile(f"{path}: {fault} at byte {fault.offset}; write it again") from fault
            if progress:
                progress(source.tell())
    write_all(target, compressor.finish())
