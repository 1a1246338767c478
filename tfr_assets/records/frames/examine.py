"""Examines a TFRecord file on disk: is it what its manifest says, and does every record parse?"""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.frames.compression import Opened, Opener, open_descriptor, open_file
from tfr_assets.records.frames.index import is_as_written
from tfr_assets.records.frames.manifest import Manifest, manifest_problem
from tfr_assets.records.frames.scan import Fault, FaultKind, Scan, scan_stream
from tfr_assets.records.kernels.digest import to_text
from tfr_assets.records.kernels.validate import FeatureChecker
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.units import MAX_RECORD_BYTES, Advance


@dataclass(frozen=True)
class FileReport:
    """What was found in one file.

    Attributes:
        path: The file.
        bytes: Its size.
        records: Number of intact records.
        payload_bytes: Their bytes, without framing and compression.
        digest: Digest over the intact records, as in a manifest.
        compression: What the content shows: `none`, `gzip` or `zlib`.
        faults: The first faults of bytes: framing, CRCs, compression, and what differs from the manifest.
        fault_count: Number of all of these.
        feature_faults: The first records that do not fit the feature spec.
        feature_fault_count: Number of all of these.
        seconds: Time it took.
    """

    path: str
    bytes: int
    records: int
    payload_bytes: int
    digest: str
    compression: str
    faults: tuple[Fault, ...]
    fault_count: int
    feature_faults: tuple[Fault, ...]
    feature_fault_count: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults and not self.feature_faults


def examine(
    path: Path | str,
    manifest: Manifest | None = None,
    features: FeatureSpec | None = None,
    progress: Advance | None = None,
    max_record_bytes: int | None = None,
    opener: Opener = open_file,
) -> FileReport:
    """Reads a file back from disk and reports everything that is wrong with it.

    Never raises for a bad file: one that is missing or unreadable is a fault, too.

    Args:
        path: The file, of any compression, written by anyone; or its URL, where `opener` takes one.
        manifest: What it must hold; None where nothing is known.
        features: What every record must parse by; None leaves the payloads alone.
        progress: Called with the number of bytes just scanned, decompressed.
        max_record_bytes: Length beyond which a record is a fault; None: 256 MiB, or more if the manifest says that the
            file's records have more in all.
        opener: Opens it.
    """
    report = None
    try:
        with opener(path) as opened:
            report = _examine(lambda: opened, path, manifest, features, progress, max_record_bytes)
    except FileNotFoundError:
        return faulty_report(Fault(str(path), 0, 0, FaultKind.MISSING))
    except OSError as error:
        return faulty_report(Fault(str(path), 0, 0, FaultKind.UNREADABLE, error.strerror or str(error)))
    return report


def examine_written(
    path: Path, progress: Advance | None = None, max_record_bytes: int | None = None, opener: Opener = open_file
) -> tuple[FileReport, Manifest | None]:
    """Examines a file with its manifest and index, and whether every record parses.

    Args:
        path: The file.
        progress: As for `examine`.
        max_record_bytes: As for `examine`.
        opener: As for `examine`.

    Returns:
        What was found, and the manifest that it was compared with. No manifest at all is no fault: a file may be
        anyone's.
    """
    manifest = Manifest.load(path)
    report = examine(path, manifest, manifest.features if manifest else None, progress, max_record_bytes, opener)
    faults = []
    if problem := manifest_problem(path):
        faults.append(Fault(str(manifest_path(path)), 0, 0, FaultKind.MANIFEST, f"{problem}; write the file again"))
    if manifest and not is_as_written(index_path(path), manifest.index):
        faults.append(Fault(str(index_path(path)), 0, 0, FaultKind.INDEX, "write the file again"))
    if faults:
        report = replace(report, faults=(*report.faults, *faults), fault_count=report.fault_count + len(faults))
    return report, manifest


def examine_files(
    paths: Sequence[Path],
    progress: Advance | None = None,
    max_record_bytes: int | None = None,
    opener: Opener = open_file,
) -> list[FileReport]:
    """Examines files, each against its manifest if it has one, several at a time: the kernels run without the GIL.

    Args:
        paths: The files.
        progress: As for `examine`.
        max_record_bytes: As for `examine`.
        opener: As for `examine`.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda path: examine_written(path, progress, max_record_bytes, opener)[0], paths))


def faulty_report(fault: Fault) -> FileReport:
    """Returns the report of a file of which only a fault is known."""
    return replace(unread_report(fault.path), faults=(fault,), fault_count=1)


def unread_report(path: str) -> FileReport:
    """Returns the report of a file that was not read."""
    return FileReport(path, 0, 0, 0, to_text(0), "none", (), 0, (), 0, 0.0)


def examine_open(
    descriptor: int,
    path: Path,
    manifest: Manifest | None = None,
    features: FeatureSpec | None = None,
    progress: Advance | None = None,
    max_record_bytes: int | None = None,
) -> FileReport:
    """Does what `examine` does with a file that is open already, under whatever name it will have.

    Args:
        descriptor: The file, open for reading; its position is moved.
        path: What the faults call it.
        manifest: As for `examine`.
        features: As for `examine`.
        progress: As for `examine`.
        max_record_bytes: As for `examine`.
    """
    return _examine(lambda: open_descriptor(descriptor), path, manifest, features, progress, max_record_bytes)


def _examine(
    open_: Callable[[], Opened],
    path: Path | str,
    manifest: Manifest | None,
    features: FeatureSpec | None,
    progress: Advance | None,
    max_record_bytes: int | None,
) -> FileReport:
    started = time.perf_counter()
    checker = FeatureChecker(features) if features else None
    size, compression, scan = 0, "none", None
    if max_record_bytes is None:
        max_record_bytes = manifest.max_record_bytes if manifest else MAX_RECORD_BYTES
    faults: list[Fault] = []
    try:
        stream, size, compression = open_()
        visit = checker.visit if checker else None
        stops = [mark.bytes for mark in manifest.marks] if manifest else []
        scan = scan_stream(stream, path, visit, progress, max_record_bytes=max_record_bytes, stops=stops)
    except OSError as error:
        faults.append(Fault(str(path), 0, 0, FaultKind.UNREADABLE, error.strerror or str(error)))
    is_other = scan and scan.faults and scan.faults[0].kind is FaultKind.UNREADABLE  # all other faults follow from it
    if scan and manifest and not is_other:
        faults += _against_manifest(path, size, compression, scan, manifest)
    found = (list(scan.faults) if scan else []) + faults
    return FileReport(
        path=str(path),
        bytes=size,
        records=scan.records if scan else 0,
        payload_bytes=scan.payload_bytes if scan else 0,
        digest=to_text(scan.digest if scan else 0),
        compression=compression,
        faults=tuple(found),
        fault_count=(scan.fault_count if scan else 0) + len(faults),
        feature_faults=tuple(
            Fault(str(path), record, offset, FaultKind.FEATURES, text)
            for record, offset, text in (checker.problems if checker else [])
        ),
        feature_fault_count=checker.count if checker else 0,
        seconds=time.perf_counter() - started,
    )


def is_intact(path: Path, manifest: Manifest) -> bool:
    """Whether a file and its index are what its manifest says, so that neither needs to be written again."""
    return is_as_written(index_path(path), manifest.index) and examine(path, manifest).ok


def _against_manifest(path: Path | str, size: int, compression: str, scan: Scan, manifest: Manifest) -> list[Fault]:
    def fault(kind: FaultKind, found: object, expected: object) -> Fault:
        return Fault(str(path), scan.records, scan.stream_bytes, kind, f"found {found}, the manifest says {expected}")

    faults = []
    if size and compression != manifest.compression:
        faults.append(fault(FaultKind.COMPRESSION, compression, manifest.compression))
    if size != manifest.bytes:
        faults.append(fault(FaultKind.SIZE, f"{size} bytes", manifest.bytes))
    if scan.fault_count and size == manifest.bytes:
        return faults  # records that are missing are those that the scan has named
    if scan.records != manifest.records:
        faults.append(fault(FaultKind.COUNT, f"{scan.records} intact records", manifest.records))
    elif to_text(scan.digest) != manifest.digest:
        faults.append(fault(FaultKind.CONTENT, f"digest {to_text(scan.digest)}", manifest.digest))
    elif scan.stops != tuple((mark.bytes, mark.records, mark.digest) for mark in manifest.marks):
        says = "its marks are not those of the file; write the file again"
        faults.append(Fault(str(manifest_path(Path(path))), 0, 0, FaultKind.MANIFEST, says))
    return faults
