"""Files of other origin by URL: which they are, and how they are read when it is found out what they hold."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tfr_assets.errors import SourceError, StaleError
from tfr_assets.layout import feature_spec_path, index_path, manifest_path, names_alike
from tfr_assets.reading.locate.foreign import choose_set
from tfr_assets.records.examples.survey import Access
from tfr_assets.records.frames.compression import Opened, PipedInput, detect_compression
from tfr_assets.storage.file_names import is_http
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.store import is_reached
from tfr_assets.storage.pipe import open_piped
from tfr_assets.storage.raw_files import backend_errors, filesystem
from tfr_assets.storage.remote_folders import contents_of, files_in, files_listed
from tfr_assets.storage.versions import version_at
from tfr_assets.storage.web import is_refusal, look_at
from tfr_assets.writing.foreign.sets import check_complete
from tfr_assets.writing.stored import looks_like_records


def undescribed_urls(url: str, split: str | None) -> list[str]:
    """Returns the files at a URL, all of one set, if none of what lies there has a manifest; else nothing.

    Args:
        url: Of one file or a folder.
        split: Which set, if there are several: a word of its files' names.

    Raises:
        ConfigError: There are several sets, or none of that split.
        StaleError: Files of a set are missing, by their names; or the manifests of files that were written here, which
            their writer may not have come to, so that they may be of two versions; or a web server's list does not show
            whether it is whole.
        SourceError: The storage refuses.
    """
    if _is_file(url):
        folder, _, name = url.rpartition("/")
        if _is_there(folder, str(manifest_path(Path(name)))):
            return []
        _check_not_ours(folder, [name], files_listed(folder))
        return [url]
    there = files_in(url)
    names = [name for name in there if looks_like_records(name)]
    if not names:
        return []
    _check_not_ours(url, names, there)
    chosen = choose_set(names_alike(names), split, url)
    check_complete(url, chosen)
    if is_http(url) and not all("-of-" in name for name in chosen):
        raise StaleError(
            f"{url} has {len(chosen)} files like {chosen[0]}, and neither a manifest nor their names tell whether the "
            "server lists all of them; give the URL of one file, or make a local copy and run `tfr adopt` on it"
        )
    return [f"{url}/{name}" for name in chosen]


def _is_file(url: str) -> bool:
    if is_reached(url):
        folder, _, name = url.rpartition("/")
        return "://" in folder and ObjectFolder(folder).stat(name) is not None
    if is_http(url):
        try:
            return not look_at(url).is_page
        except FileNotFoundError:
            return False
    with backend_errors(url):
        fs, path = filesystem(url, {})
        return bool(fs.isfile(path))


def _is_there(folder: str, name: str) -> bool:
    try:
        return bool(contents_of(folder, [name]))
    except FileNotFoundError:
        return False
    except SourceError as error:
        if is_http(folder) and is_refusal(error):
            return False  # what is not there, many web servers forbid; what is read is checked in any case
        raise


def _check_not_ours(folder: str, names: Sequence[str], there: Collection[str]) -> None:
    if (spec := feature_spec_path(Path()).name) in there:
        raise StaleError(
            f"{folder} has the feature spec of files that were written or adopted here, and none of their manifests: "
            f"copy the folder there again with all that is in it, or write the files again. If they are others, remove "
            f"{folder}/{spec}"
        )
    indexes = index_path(Path()).parent.name
    has_index = files_listed(f"{folder}/{indexes}")
    if ours := next((name for name in names if index_path(Path(name)).name in has_index), None):
        raise StaleError(
            f"{folder} has the index of {ours}, and not its manifest, which is written last: a writer is still at "
            "work, or was killed. Wait for it, or write the files again. If they were not written here, remove "
            f"{folder}/{indexes}"
        )


@contextmanager
def _open(path: Path | str) -> Iterator[Opened]:
    """Opens a file as one stream, which is of one version."""
    url = str(path)
    found = version_at(url)
    if found.size is None:
        raise SourceError(
            f"{url}: the server does not say how large it is, so that nobody would notice if its end did not come; "
            "make a local copy, and run `tfr adopt` on it"
        )
    compression = detect_compression(found.head())
    with open_piped(url, found.size) as descriptor:
        yield Opened(PipedInput.of(descriptor, found.size, compression), found.size, compression)


REMOTE = Access(_open, lambda path: version_at(str(path)).version or "")
"""How files by URL are read. The identity of one whose versions cannot be told apart is empty."""
