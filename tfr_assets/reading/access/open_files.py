"""Files that are open for random access: that each is what its manifest said, and stays it.

A file is opened when the first of its records is asked for, and only if its manifest still is the one that was opened
with the dataset: whoever replaces a file removes its manifest before and writes the new one last. From then on, its
name must lead to the same, unchanged file. So records of two versions never mix, and each is where the index says,
of which the manifest has a checksum, with both of its CRCs.

A compressed file is decompressed once, into a temporary file without a name, into which a remote one is copied of which
no parts can be fetched. Descriptors have no position that
anything here depends on, so that threads and forked processes share them; no lock is held that a fork could copy.
"""

import errno
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tfr_assets.errors import ConfigError, DamagedFile, SourceError, TfrError, WriteError
from tfr_assets.layout import index_path
from tfr_assets.reading.access.remote_files import REACH, RemoteFile, fetched_index, open_remote
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.records.examples.survey import Identity, identity_of
from tfr_assets.records.frames.compression import InputStream, PipedInput, PlainInput, StreamFault
from tfr_assets.records.frames.gather import Runs
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.frames.manifest import FRAMING, Manifest
from tfr_assets.records.frames.scan import Fault, FaultKind, Scan, scan_stream
from tfr_assets.records.frames.segments import is_replaced, stale
from tfr_assets.records.frames.skipped import describe_faults
from tfr_assets.records.kernels.digest import to_text
from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.pipe import open_piped

_LEAST_OPEN = 32
_PIECE = 1 << 20
_TOO_MANY = (errno.EMFILE, errno.ENFILE)


class OpenFile:
    """A file of which records are read. Its descriptor is closed when nobody uses it any more.

    Attributes:
        path: The file.
        descriptor: Its plain bytes.
        bounds: int64 of shape (records + 1,): where each frame starts, and where the last one ends.
        identity: What it was when it was opened; None: it is a copy that nobody else has.
    """

    is_remote = False

    def __init__(self, path: str, descriptor: int, identity: Identity | None) -> None:
        self.path, self.descriptor = path, descriptor
        self.identity = identity
        self.bounds = np.zeros(1, np.int64)

    @property
    def size(self) -> int:
        """Bytes that there are."""
        return os.fstat(self.descriptor).st_size

    def check(self) -> None:
        """Makes sure that the name leads to this file, as it was opened.

        Raises:
            StaleError: It does not.
        """
        if self.identity is None:
            return
        try:
            now = identity_of(os.stat(self.path))  # noqa: PTH116 - with every batch, so that a Path would cost
        except OSError as error:
            raise stale(self.path) from error
        if now != self.identity:
            raise stale(self.path)

    def read(
        self, runs: Runs, buffer: np.ndarray, problems: np.ndarray, scratch: np.ndarray, first: int, stop: int
    ) -> None:
        """Reads some of the runs; arguments as for `Runs.read`.

        Raises:
            DamagedFile: It cannot be read.
        """
        try:
            runs.read(self.descriptor, buffer, problems, scratch, first, stop)
        except OSError as error:
            raise DamagedFile(f"{self.path}: cannot be read: {error.strerror or error}") from error

    @contextmanager
    def stream(self) -> Iterator[InputStream]:
        """Opens all of its plain bytes."""
        with os.fdopen(os.dup(self.descriptor), "rb", buffering=0) as own:  # the position is shared, but not needed
            os.lseek(own.fileno(), 0, os.SEEK_SET)
            yield PlainInput(own.fileno())

    def decompressed(self, compression: str) -> "OpenFile":
        """Returns the same file, read to its end, with what it holds, decompressed, in a temporary file without a name.

        Raises:
            DamagedFile: It is damaged.
            WriteError: There is no room for what it holds.
            OSError: It cannot be read.
        """
        stream, piece = PipedInput.of(self.descriptor, 0, compression), bytearray(_PIECE)
        try:
            with tempfile.TemporaryFile(buffering=0) as plain:
                while got := stream.read_into(memoryview(piece)):
                    try:
                        _write(plain.fileno(), memoryview(piece)[:got])
                    except OSError as error:
                        raise WriteError(
                            f"{self.path} cannot be unpacked into the temporary folder {tempfile.gettempdir()}: "
                            f"{error.strerror or error}. Make room there, or let TMPDIR name another folder"
                        ) from error
                return OpenFile(self.path, os.dup(plain.fileno()), self.identity)
        except StreamFault as fault:
            kind = FaultKind.TRUNCATED_STREAM if fault.truncated else FaultKind.DAMAGED_STREAM
            raise DamagedFile(describe_faults([Fault(self.path, 0, fault.offset, kind, str(fault))])) from fault

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # at exit, modules may be gone already
        close(self.descriptor)


AnyFile = OpenFile | RemoteFile


def _write(descriptor: int, content: memoryview) -> None:
    """Writes all of it: where room ends, the system takes a part first, and refuses the rest."""
    while content:
        content = content[os.write(descriptor, content) :]


class OpenFiles:
    """The files of a dataset, opened as they are needed. Any number of threads may use it.

    Args:
        files: The files.

    Attributes:
        at_once: How many a thread may hold, so that several threads stay within the limit of the process.
    """

    def __init__(self, files: RecordFiles) -> None:
        self._files = files
        self._scanned = {at: files.scanned[path] for at, path in enumerate(files.paths) if path in files.scanned}
        self._reach: dict[int, tuple[int, int] | None] = {}
        self._open: dict[int, AnyFile] = {}
        self._bounds = {index: each.bounds for index, each in self._scanned.items()}
        self._identities = {index: each.identity for index, each in self._scanned.items()}
        self._most = max(_LEAST_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
        self.at_once = max(1, self._most // 4)

    def reach(self, index: int) -> tuple[int, int] | None:
        """Returns how records of a file are best read; see `Runs`."""
        if not is_remote(self._files.paths[index]):
            return None
        if index not in self._reach:  # only its server tells whether parts of it can be had
            self[index]
        return self._reach[index]

    def __getitem__(self, index: int) -> AnyFile:
        """Returns a file, open.

        Raises:
            SourceError: A remote one is not there, or the store refused.
            StaleError: It is not the one whose manifest was opened.
            DamagedFile: It cannot be read, or has another size.
            ConfigError: The process may not open any more files.
            WriteError: It is compressed, and there is no room for what it holds.
        """
        if found := self._open.get(index):
            return found
        opened = self._opened_remote(index) if is_remote(self._files.paths[index]) else self._opened(index)
        found = self._open.setdefault(index, opened)  # another thread may have been faster
        for oldest in list(self._open)[: -self._most]:
            self._open.pop(oldest, None)
        return found

    def bounds(self, index: int) -> np.ndarray:
        """Returns where the records of a file are: see `OpenFile`. Raises as `[]`, with which it is opened at first."""
        known = self._bounds.get(index)
        return self[index].bounds if known is None else known

    def close(self) -> None:
        """Lets go of all files; whoever reads one at this moment keeps it until it is done."""
        self._open.clear()

    def _opened(self, index: int) -> OpenFile:
        path, manifest = self._files.paths[index], self._files.manifests[index]
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and is_replaced(path, manifest):
                raise stale(path) from error
            raise _unreadable(path, error) from error
        identity = identity_of(os.fstat(descriptor))
        file = OpenFile(path, descriptor, identity)
        known = self._identities.setdefault(index, identity)
        try:
            if known != identity:
                raise stale(path)
            if index not in self._scanned and is_replaced(path, manifest):
                os.close(os.dup(descriptor))  # else it is the limit of open files that hides the manifest
                raise stale(path)
            if manifest.compression != "none":
                file = file.decompressed(manifest.compression)
            if index not in self._bounds:
                self._bounds[index] = _bounds(file, manifest)
        except OSError as error:
            raise _unreadable(path, error) from error
        file.bounds = self._bounds[index]
        return file

    def _opened_remote(self, index: int) -> AnyFile:
        path, manifest = self._files.paths[index], self._files.manifests[index]
        scanned = self._scanned.get(index)
        file: AnyFile | None = open_remote(path, manifest, scanned.identity if scanned else None)
        reach = self._reach.setdefault(index, REACH if file else None)
        if file is None or reach is None:
            if reach:
                raise SourceError(f"{path}: its server does not give parts of it any more; open it again")
            file = _fetched_whole(path, manifest)
            self._bounds[index] = file.bounds
        if index not in self._bounds:
            self._bounds[index] = _bounds(file, manifest)
        file.bounds = self._bounds[index]
        return file


def _fetched_whole(url: str, manifest: Manifest) -> OpenFile:
    """Returns what a file holds that cannot be read in parts, in a temporary file without a name.

    What comes is compared with the digest, whatever the storage says of versions. Raises as `OpenFiles`.
    """
    with open_piped(url, manifest.bytes) as descriptor:
        file = OpenFile(url, os.dup(descriptor), None).decompressed(manifest.compression)
    file.bounds, scan = scanned_bounds(file, manifest.max_record_bytes)
    _check(scan, url, manifest, "Where parts of a file cannot be fetched, damaged files")
    return file


def _unreadable(path: str, error: OSError) -> TfrError:
    """Returns the error for a file that the system does not give."""
    if error.errno in _TOO_MANY:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return ConfigError(
            f"{path} cannot be opened: {error.strerror} (the limit of this process is {most}). Raise it with "
            "`ulimit -n`, close other files, or use fewer workers"
        )
    return DamagedFile(f"{path}: cannot be read: {error.strerror or error}")


def _bounds(file: AnyFile, manifest: Manifest) -> np.ndarray:
    """Returns where a file's records are: by its index if that is the one that was written, else by a look at all.

    Raises:
        StaleError: The file holds other records.
        DamagedFile: It has no valid index and is damaged.
    """
    try:
        index = _index(file.path, manifest) if manifest.index else None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _TOO_MANY:
            raise
        index = None
    if index is not None and len(index) == manifest.records:
        bounds = np.zeros(len(index) + 1, np.int64)
        bounds[:-1] = index[:, 0]
        bounds[-1] = manifest.stream_bytes
        return bounds
    bounds, scan = scanned_bounds(file, manifest.max_record_bytes)
    _check(scan, file.path, manifest, "Without a valid index, damaged files")
    return bounds


def _check(scan: Scan, path: str, manifest: Manifest, which: str) -> None:
    """Makes sure that a file holds the records that its manifest says.

    Raises:
        DamagedFile: It is damaged.
        StaleError: It holds others.
    """
    if scan.faults:
        raise DamagedFile(f"{describe_faults(scan.faults)}. {which} are only read in their order")
    if (scan.records, to_text(scan.digest)) != (manifest.records, manifest.digest):
        raise stale(path)


def _index(path: str, manifest: Manifest) -> np.ndarray:
    return fetched_index(path, manifest) if is_remote(path) else read_index(index_path(Path(path)), manifest.index)


def scanned_bounds(file: AnyFile, max_record_bytes: int) -> tuple[np.ndarray, Scan]:
    """Reads all of a file to find where its records are.

    Returns:
        The bounds of all intact records, as those of `OpenFile`; and what else was found.
    """
    sizes = []

    def visit(_buffer: np.ndarray, frames: np.ndarray, _offset: int) -> None:
        sizes.append(frames[:, 1] + FRAMING)

    with file.stream() as stream:
        scan = scan_stream(stream, file.path, visit, max_record_bytes=max_record_bytes)
    return np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64), scan
