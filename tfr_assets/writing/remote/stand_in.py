"""Files by URL for what works with paths: a local folder that stands in for them.

Small files (manifests, indexes, what describes shards) are fetched into it. A TFRecord file is there with its size
only, and takes no room; `StandIn.open` reads its bytes from the store, as a stream. So all that compares files with
manifests, plans and each other works on an object store as on a disk, and says what it finds with the URLs.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfr_assets.errors import ConfigError, TfrError
from tfr_assets.layout import SLICES_FILE, feature_spec_path, index_path, manifest_path
from tfr_assets.records.frames.compression import Opened, open_file, open_object
from tfr_assets.storage.atomic import refusals
from tfr_assets.storage.objects.folder import ObjectFolder, Stat
from tfr_assets.storage.objects.multipart import Source
from tfr_assets.storage.objects.ranges import chunks_of
from tfr_assets.storage.objects.store import store_of
from tfr_assets.storage.spool import open_spool
from tfr_assets.urls import split_url, url_of
from tfr_assets.writing.export.tfds import FEATURES, INFO
from tfr_assets.writing.export.tfds_features import LABELS

if TYPE_CHECKING:
    from tfr_assets.records.examples.inspect import Inspection
    from tfr_assets.records.frames.examine import FileReport
    from tfr_assets.records.frames.scan import Fault

_AT_ONCE = 16  # requests for small files
_BESIDE = {manifest_path(Path("x")).parent.name, index_path(Path("x")).parent.name, "readers", "before", "writers"}
_FETCHED = {  # what describes shards and raw data; other files may be large, and nothing here reads them
    feature_spec_path(Path()).name, FEATURES, INFO, SLICES_FILE, "inventory.json", "state.json", "shards.json",
    "landing.json",
}  # fmt: skip


@dataclass(frozen=True)
class StandIn:
    """Paths of this machine in place of paths and URLs.

    Attributes:
        paths: One for each that was asked for.
        folders: Local folders, and the URL that each stands in for.
    """

    paths: tuple[Path, ...]
    folders: tuple[tuple[Path, str], ...] = ()

    def url(self, path: Path) -> str | None:
        """Returns what a path stands in for; None: it is the file itself."""
        for folder, url in self.folders:
            if path.is_relative_to(folder):
                return f"{url}/{path.relative_to(folder).as_posix()}".removesuffix("/.")
        return None

    def source(self, path: Path) -> Source | None:
        """Returns the object that a path stands in for, as it is now; None: it is a file, or is not there.

        Raises:
            SourceError: A store refused.
        """
        url = self.url(path)
        folder, _, key = (url or "").rpartition("/")
        stat = ObjectFolder(folder).stat(key) if url else None
        return Source(str(url), stat.size, stat.etag) if stat else None

    @contextmanager
    def open(self, path: Path) -> Iterator[Opened]:
        """Opens a TFRecord file wherever it is; see `records.frames.compression.Opener`.

        Raises:
            OSError: It cannot be read.
        """
        url = self.url(path)
        if url is None:
            with open_file(path) as opened:
                yield opened
            return
        with open_object(url, path.stat().st_size) as opened:  # FileNotFoundError, if the store has none
            yield opened

    def names(self, text: str) -> str:
        """Returns a text with the URLs in place of what stands in for them."""
        for folder, url in self.folders:
            text = text.replace(str(folder), url)
        return text

    @contextmanager
    def named(self) -> Iterator[None]:
        """Raises errors of the block with the files that are meant."""
        try:
            yield
        except TfrError as error:
            if (says := self.names(str(error))) == str(error):
                raise
            raise type(error)(says) from error

    def report(self, report: "FileReport") -> "FileReport":
        """Returns a report of the files that are meant."""
        return replace(
            report,
            path=self.names(report.path),
            faults=tuple(map(self._fault, report.faults)),
            feature_faults=tuple(map(self._fault, report.feature_faults)),
        )

    def inspection(self, found: "Inspection") -> "Inspection":
        """Returns what was found in the file that is meant."""
        return replace(found, path=self.names(found.path), faults=tuple(map(self._fault, found.faults)))

    def _fault(self, fault: "Fault") -> "Fault":
        return replace(fault, path=self.names(fault.path), detail=self.names(fault.detail))


@contextmanager
def standing_in(
    paths: Sequence[Path | str], choose: Callable[[Path], Sequence[Path]] = lambda path: [path]
) -> Iterator[StandIn]:
    """Yields local paths for paths and URLs, of which nothing is left after the block.

    Args:
        paths: Files and folders; a string is a URL.
        choose: Returns what of a path is asked for, such as folders in it. When it is called, what stands in for a URL
            has the sizes of all files, and which slices there are.

    Raises:
        ConfigError: There is nothing at a URL.
        SourceError: A store refused.
        WriteError: There is no room for what stands in.
    """
    with ExitStack() as stack:
        found: list[Path] = []
        folders: list[tuple[Path, str]] = []
        wanted: list[tuple[Path, str]] = []
        spool = stack.enter_context(open_spool()) if any(isinstance(path, str) for path in paths) else None
        for number, path in enumerate(paths):
            if isinstance(path, Path) or spool is None:
                found.append(Path(path))
                if url := url_of(found[-1]):
                    folders.append((found[-1], url))
                continue
            bucket, key = split_url(path)
            above, _, name = f"{bucket}/{key}".rpartition("/")
            found.append(spool / str(number) / name)
            folders.append((spool / str(number), above) if key else (found[-1], bucket))
            wanted.append((found[-1], f"{bucket}/{key}".rstrip("/")))
        there = StandIn(tuple(found), tuple(folders))
        with there.named():
            small = _make_all(wanted) if spool else []
            there = replace(there, paths=tuple(each for path in found for each in choose(path)))
            beside = {path if path.is_dir() else path.parent for path in there.paths}
            _fetch_all([each for each in small if not beside.isdisjoint(each[0].parents)])
        yield there


def _make_all(wanted: Sequence[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Makes files of the sizes of those at URLs, and returns which of them are small, and their URLs."""
    with refusals(wanted[0][0].parent), ThreadPoolExecutor(_AT_ONCE) as pool:
        small = [each for some in pool.map(_make, *zip(*wanted, strict=True)) for each in some]
    _fetch_all([each for each in small if each[0].name == SLICES_FILE])
    return small


def _make(path: Path, url: str) -> list[tuple[Path, str]]:
    """Makes what stands in for a file, with what lies beside it, or for a folder."""
    store_of(split_url(url)[0])  # says what to install
    folder, above = ObjectFolder(url), ObjectFolder(url.rpartition("/")[0])
    stat = above.stat(path.name) if split_url(url)[1] else None
    # what has bytes is a file: to look for files below its name would be a request for each shard
    found = {} if stat and stat.size else folder.walk()
    objects = {key: each for key, each in found.items() if "/." not in f"/{key}"}
    if not objects:
        if stat is None:
            raise ConfigError(f"there is no file or folder {url}")
        folder, path, objects = above, path.parent, _with_beside(above, path.name, stat)
    for key, stat in objects.items():
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        with (path / key).open("wb") as file:
            file.truncate(stat.size)
    return [(path / key, folder.url_of(key)) for key in objects if _is_small(key)]


def _with_beside(folder: ObjectFolder, name: str, stat: Stat) -> dict[str, Stat]:
    """Returns a file with its manifest and index, if they are there."""
    beside = [str(place(Path(name))) for place in (manifest_path, index_path)]
    return {name: stat, **{key: found for key in beside if (found := folder.stat(key))}}


def _fetch_all(small: Sequence[tuple[Path, str]]) -> None:
    if not small:
        return
    with refusals(small[0][0].parent), ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda each: fetch_file(each[1], each[0]), small):
            pass


def _is_small(key: str) -> bool:
    if Path(key).name in _FETCHED or key.endswith(LABELS):
        return True
    return Path(key).parent.name in _BESIDE and key.endswith((".json", ".idx"))


def fetch_file(url: str, path: Path) -> None:
    """Copies an object to a path.

    Raises:
        SourceError: The store refused.
        OSError: The file system refused.
    """
    with path.open("wb") as file:
        for chunk in chunks_of(url):
            file.write(chunk)
