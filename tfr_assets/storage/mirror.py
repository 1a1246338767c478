"""Folders of this machine that stand in for what lies in an object store, which alone is the truth.

    small files             manifests, inventory, what describes shards: copies
    TFRecord files          their sizes only, which take no room; `records.frames.compression` reads them from the store
    indexes, landed rows    their sizes only, until `bring` makes copies of them

`storage.atomic` has the store hold a file before it takes its name here, in the order in which files take their names,
and removes objects before it removes files. So whatever holds of a disk when a process is killed, holds of the store.
What others have done is seen after `catch_up`. A copy's time of change is made from its object's entity tag: nothing
else has to be kept to know whether it is current. Of paths that stand in for nothing, nothing here does anything.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from tfr_assets.errors import SourceError
from tfr_assets.storage.locks import hold_lock, if_abandoned, make_locked_file
from tfr_assets.storage.objects.folder import ObjectFolder, Stat
from tfr_assets.storage.objects.guard import check_held
from tfr_assets.storage.objects.publish import create_alone
from tfr_assets.storage.objects.ranges import chunks_of
from tfr_assets.storage.objects.store import store_of
from tfr_assets.urls import mirror_root, url_of

_AT_ONCE = 16  # requests for small files
_AT_A_TIME = 8 << 20  # bytes of a file that is sent with one request
_RECORDS = re.compile(r".+\.tfrecord(-\d{5}-of-\d{5})?")
_LATER = re.compile(r".+\.(idx|parquet)")
_FETCHED = ".fetched"  # how names of files end that are being fetched
_TIMES = 2**29  # as many even seconds as every file system knows
_MANIFEST = re.compile(r"(.*/)?manifest/[^/]+\.json")


class Sending:
    """A file that is being written under a temporary name, on its way to the store."""

    def __init__(self, path: Path, file: Path) -> None:
        """Prepares.

        Args:
            path: The name that it will get.
            file: The name that it has.
        """
        self._path, self._file = path, file
        self._is_mirrored = url_of(path) is not None
        self._is_sent = False
        self._upload = ExitStack()

    def __enter__(self) -> "Sending":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._upload.__exit__(kind, error, trace)

    def send(self) -> None:
        """Sends all bytes of a large file, which appears in the store only when its name is given.

        Raises:
            WriteError: The store refused.
        """
        if not self._is_mirrored or self._is_sent:
            return
        folder, key = _object(self._path)
        if _RECORDS.fullmatch(self._path.name) or self._file.stat().st_size > _AT_A_TIME:
            self._upload.enter_context(folder.uploading(key, self._file))
            self._is_sent = True

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Has the object appear in the store; then the block gives the file its name.

        Raises:
            WriteError: The store refused, or somebody else has put a manifest in the place of ours.
        """
        if not self._is_mirrored:
            yield
            return
        self.send()
        folder, key = _object(self._path)
        with _alone(self._path):
            check_held(folder.url_of(key))
            if self._is_sent:
                self._upload.close()
                is_copy = _RECORDS.fullmatch(self._path.name) is None
                if not is_copy:
                    _empty(self._file)
                if stat := folder.stat(key):
                    _mark(self._file, stat.etag, is_copy)
            else:
                put = create_alone if _MANIFEST.fullmatch(key) else ObjectFolder.put
                _mark(self._file, put(folder, key, self._file.read_bytes()).etag)
            yield


@contextmanager
def removing(path: Path) -> Iterator[None]:
    """Removes an object from the store; then the block removes the file.

    Raises:
        WriteError: The store refused.
    """
    if url_of(path) is None:
        yield
        return
    folder, key = _object(path)
    with _alone(path):
        check_held(folder.url_of(key))
        folder.delete([key])
        yield


@contextmanager
def naming_folder(temporary: Path, folder: Path, last: str) -> Iterator[None]:
    """Has the files of a folder appear in the store; then the block gives the folder its name.

    Args:
        temporary: The folder.
        folder: The name that it will get.
        last: Name of the file without which the others do not count.

    Raises:
        WriteError: The store refused.
    """
    url = url_of(folder)
    if url is None:
        yield
        return
    objects = ObjectFolder(url)
    for path in sorted(temporary.iterdir(), key=lambda path: (path.name == last, path.name)):
        with objects.uploading(path.name, path):
            check_held(url)
        if stat := objects.stat(path.name):
            _mark(path, stat.etag)
    with _alone(folder):
        yield


def remove_folder(folder: Path) -> None:
    """Removes a folder of files, wherever they lie; what the file system does not let go stays.

    Raises:
        WriteError: The store refused.
    """
    if url := url_of(folder):
        with _alone(folder):
            check_held(url)
            objects = ObjectFolder(url)
            objects.delete(list(objects.walk()))
    shutil.rmtree(folder, ignore_errors=True)


def catch_up(folder: Path) -> None:
    """Has a folder that stands in hold what the store holds now.

    Raises:
        SourceError: The store refused.
        ConfigError: It cannot be opened as it is configured.
        OSError: The file system refused.
    """
    url = url_of(folder)
    if url is None:
        return
    objects = ObjectFolder(url)
    store_of(objects.bucket)  # says what to install
    with _alone(folder):
        there = {key: stat for key, stat in objects.walk().items() if "/." not in f"/{key}"}
        for key in _files_in(folder) - there.keys():
            (folder / key).unlink(missing_ok=True)
        _take(objects, folder, there)


def catch_up_files(*paths: Path) -> None:
    """Does the same with single files of one folder that stands in, whether they are there or not.

    Raises:
        SourceError, ConfigError, OSError: As `catch_up`.
    """
    if not paths or url_of(paths[0]) is None:
        return
    root = mirror_root(paths[0])
    objects = ObjectFolder(str(url_of(root)))
    keys = [path.relative_to(root).as_posix() for path in paths]
    with _alone(root):
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            stats = dict(zip(keys, pool.map(objects.stat, keys), strict=True))
        for key, stat in stats.items():
            if stat is None:
                (root / key).unlink(missing_ok=True)
        _take(objects, root, {key: stat for key, stat in stats.items() if stat})


def bring(path: Path) -> None:
    """Fetches an index, or landed rows, that are not here, or their size only. What is not in the store, goes here.

    Raises:
        SourceError: The store refused.
        OSError: The file system refused.
    """
    url = url_of(path)
    if url is None or _is_copy(path):
        return
    folder, key = _object(path)
    if stat := folder.stat(key):
        _write(path, chunks_of(url), stat.etag)
    else:
        path.unlink(missing_ok=True)


def state_of(path: Path) -> str:
    """Returns what differs once anything has written to a file, even where size and time were put back.

    Of what stands in, it is the same on all machines.
    """
    try:
        status = path.stat()
    except OSError:
        return "none"
    if url_of(path):
        return f"{int(status.st_mtime)}-{status.st_size}"
    return f"{status.st_ino}-{status.st_size}-{status.st_ctime_ns}"


def _take(objects: ObjectFolder, folder: Path, there: Mapping[str, Stat]) -> None:
    """Has a folder hold objects: copies of small ones, the sizes of others."""
    wanted = []
    for key, stat in there.items():
        path = folder / key
        if not _is_current(path, stat):
            if _RECORDS.fullmatch(path.name) or _LATER.fullmatch(path.name):
                _stand(path, stat)
            else:
                wanted.append(key)

    def fetch(key: str) -> None:
        if got := objects.get_versioned(key):
            _write(folder / key, iter([got[0]]), got[1].etag)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(fetch, wanted):
            pass


def _stand(path: Path, stat: Stat) -> None:
    with _replacing(path) as temporary:
        os.truncate(temporary, stat.size)
        _mark(temporary, stat.etag, is_copy=False)


def _write(path: Path, content: Iterator[bytes | memoryview], etag: str) -> None:
    with _replacing(path) as temporary:
        with temporary.open("wb") as file:
            for chunk in content:
                file.write(chunk)
        _mark(temporary, etag)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Makes a file, which takes the place of another if the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = make_locked_file(path.parent, f".{path.name[:100]}.", _FETCHED)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


def _empty(path: Path) -> None:
    """Leaves of a file's content nothing but its size."""
    size = path.stat().st_size
    os.truncate(path, 0)
    os.truncate(path, size)


def _mark(path: Path, etag: str, is_copy: bool = True) -> None:
    seconds = _seconds(etag) + (not is_copy)
    os.utime(path, (seconds, seconds))


def _is_current(path: Path, stat: Stat) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return found.st_size == stat.size and int(found.st_mtime) // 2 * 2 == _seconds(stat.etag)


def _is_copy(path: Path) -> bool:
    return path.exists() and int(path.stat().st_mtime) % 2 == 0


def _seconds(etag: str) -> int:
    """Returns a time of change: an even number of seconds is that of a copy, the next one of what has the size only."""
    return int(hashlib.sha256(etag.encode()).hexdigest()[:13], 16) % _TIMES * 2


def _files_in(folder: Path) -> set[str]:
    """Returns the files in a folder, after what killed processes have left there is removed."""
    found = set()
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        here = Path(above).relative_to(folder)
        found |= {(here / name).as_posix() for name in names if not name.startswith(".")}
        for stray in (Path(above, name) for name in names if name.startswith(".") and name.endswith(_FETCHED)):
            with if_abandoned(stray) as abandoned:
                if abandoned:
                    stray.unlink(missing_ok=True)
    return found


def _object(path: Path) -> tuple[ObjectFolder, str]:
    root = mirror_root(path)
    url = url_of(root)
    if url is None:
        raise SourceError(f"{path} stands in for nothing")
    return ObjectFolder(url), path.relative_to(root).as_posix()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Holds off other processes of this machine that name, remove or fetch files of the same store."""
    root = mirror_root(path)
    root.mkdir(parents=True, exist_ok=True)
    with hold_lock(root / ".mirror"):
        yield
