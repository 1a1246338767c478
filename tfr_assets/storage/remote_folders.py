"""Folders by URL: which files are in them, how large they are, and what small ones hold."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tfr_assets.errors import SourceError
from tfr_assets.storage.file_names import is_http
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.store import is_reached
from tfr_assets.storage.raw_files import backend_errors, filesystem
from tfr_assets.storage.web import asking_again, is_refusal, look_at

_AT_ONCE = 16  # requests for small files, which wait most of the time


def files_in(folder: str) -> dict[str, int | None]:
    """Returns the names in a folder, and the sizes of files where the listing tells; nothing, if it is not there.

    Raises:
        SourceError: The storage refuses.
    """
    if is_reached(folder):
        return {name: stat.size for name, stat in ObjectFolder(folder).list().items()}
    with backend_errors(folder):
        fs, path = filesystem(folder, {})
        fs.invalidate_cache()
        try:
            listed = asking_again(folder, lambda: fs.ls(path, detail=False)) if is_http(folder) else fs.ls(path, False)
        except (FileNotFoundError, NotADirectoryError):
            return {}
    return {name.rstrip("/").rpartition("/")[2]: None for name in listed}


def files_listed(folder: str) -> dict[str, int | None]:
    """Returns what `files_in` does; nothing where a web server refuses to list, as many do for what is not there.

    Raises:
        SourceError: Other storage refuses.
    """
    try:
        return files_in(folder)
    except SourceError as error:
        if is_http(folder) and is_refusal(error):
            return {}
        raise


def contents_of(folder: str, names: Sequence[str]) -> dict[str, bytes]:
    """Returns what small files hold, by name, fetched several at once.

    Raises:
        FileNotFoundError: One is not there.
        SourceError: The storage refuses.
    """
    if is_reached(folder):
        objects = ObjectFolder(folder)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = dict(zip(names, pool.map(objects.get, names), strict=True))
        if missing := [name for name, content in found.items() if content is None]:
            raise FileNotFoundError(objects.url_of(missing[0]))
        return {name: content for name, content in found.items() if content is not None}
    with backend_errors(folder):
        fs, path = filesystem(folder, {})
        if is_http(folder):  # each by itself, so that only what failed is asked for again
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                urls = [f"{folder}/{name}" for name in names]
                return dict(
                    zip(names, pool.map(lambda url: asking_again(url, lambda: fs.cat_file(url)), urls), strict=True)
                )
        fetched = fs.cat([f"{path}/{name}" for name in names])
    return {name: fetched[f"{path}/{name}"] for name in names}


def sizes_of(folder: str, names: Sequence[str]) -> list[int | None]:
    """Returns files' sizes; None where a storage does not tell.

    Raises:
        FileNotFoundError: One is not there.
        SourceError: The storage refuses.
    """
    if is_reached(folder):
        listed = files_in(folder)
        if missing := [name for name in names if name not in listed]:
            raise FileNotFoundError(f"{folder}/{missing[0]}")
        return [listed[name] for name in names]
    if is_http(folder):
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [found.size for found in pool.map(look_at, [f"{folder}/{name}" for name in names])]
    with backend_errors(folder):
        fs, path = filesystem(folder, {})
        return list(fs.sizes([f"{path}/{name}" for name in names]))
