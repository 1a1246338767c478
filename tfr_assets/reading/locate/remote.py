"""What to read from elsewhere: the URL of a dataset, of a folder of TFRecord files or of one file → one whole set.

Whatever fsspec knows: https, s3, gs, memory, … A folder must be one that can be listed, as object stores and most web
servers do. As on a disk, the manifests say which files there are; where there are none, the files are of other origin.
"""

from collections.abc import Sequence
from pathlib import Path

from tfr_assets.errors import ConfigError, SourceError, StaleError
from tfr_assets.reading.locate.file_sets import CHOICES, FileChoice, is_record_file, sets_of
from tfr_assets.reading.locate.foreign import adopted_files
from tfr_assets.reading.locate.foreign_cache import foreign_files
from tfr_assets.reading.locate.record_files import Found, RecordFiles, check_together, lines
from tfr_assets.reading.locate.undescribed import undescribed_urls
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.file_names import is_http
from tfr_assets.storage.remote_folders import contents_of, files_in, files_listed, sizes_of
from tfr_assets.storage.web import is_refusal


def locate_url(
    url: str,
    files: FileChoice | None,
    split: str | None,
    sizes_must_fit: bool,
    max_record_bytes: int | None = None,
    cache: Path | None = None,
) -> RecordFiles:
    """Returns the files to read. Fetches manifests, and asks for files' sizes; those without are read to their ends.

    Args:
        url: Of a dataset's folder, of a folder of TFRecord files, or of one file.
        files: As for `locate`.
        split: As for `locate`.
        sizes_must_fit: As for `locate`.
        max_record_bytes: As for `locate`.
        cache: As for `locate`.

    Raises:
        ConfigError: There is nothing at this URL, or no such split, or nothing reads such URLs.
        StaleError: Files are missing there, or of several versions.
        DamagedFile: A file differs from its manifest in size, or has none and is damaged.
        SourceError: The storage refuses.
        WriteError: `cache` cannot be written to.
    """
    import fsspec  # not above: reading local files needs none

    url = url.rstrip("/")
    scheme = url.partition("://")[0]
    if scheme.rpartition("::")[2] not in fsspec.available_protocols():
        raise ConfigError(f"{url}: nothing here reads {scheme}://; use https, s3, gs or another that fsspec knows")
    folder, _, name = url.rpartition("/")
    if is_record_file(name) and (found := _fetch_if_there(folder, name)):
        return check_together(found, sizes_must_fit)
    folders = [url] if files is None else []
    if not is_record_file(name):
        folders += [f"{url}/{choice}" for choice in (CHOICES if files is None else (files,))]
    incomplete: StaleError | None = None
    for each in folders:
        if with_manifest := names_described(each):
            try:
                names = _whole_set(each, with_manifest, split)
            except StaleError as error:
                if files is not None or each != f"{url}/{CHOICES[0]}":
                    raise
                incomplete = error  # while shards are being written, the merged file can be read
                continue
            return check_together(_fetch(each, names), sizes_must_fit)
    if incomplete:
        raise incomplete
    if files is None and (urls := undescribed_urls(url, split)):
        return foreign_files(urls, max_record_bytes, cache)
    looked = " or ".join(f"{each}/manifest" for each in folders)
    raise ConfigError(
        f"{url}: there is no TFRecord file, and no manifest was found there, in {looked}"
        + ("; if files lie there that the server does not list, give the URL of one" if is_http(url) else "")
    )


def names_described(folder: str) -> list[str]:
    """Returns the names of the files in a folder that have a manifest.

    Raises:
        SourceError: The storage refuses.
    """
    return [name.removesuffix(".json") for name in files_listed(f"{folder}/manifest") if name.endswith(".json")]


def _fetch_if_there(folder: str, name: str) -> list[Found]:
    """Returns a file with its manifest; nothing, where either is not there."""
    try:
        return _fetch(folder, [name])
    except ConfigError:
        return []
    except SourceError as error:
        if is_http(folder) and is_refusal(error):
            return []  # what is not there, many web servers forbid
        raise


def gather_urls(urls: Sequence[str]) -> RecordFiles:
    """Returns remote files that were located before, of one folder. Raises as `locate_url`, but not for their sizes."""
    folder = urls[0].rpartition("/")[0]
    return check_together(_fetch(folder, [url.rpartition("/")[2] for url in urls]), sizes_must_fit=False)


def _whole_set(folder: str, with_manifest: list[str], split: str | None) -> list[str]:
    if adopted := _adopted_set(folder, with_manifest, split):
        return adopted
    there = set(with_manifest) & files_in(folder).keys()
    sets = sets_of(with_manifest, split, folder)
    whole = [names for names in sets if there.issuperset(names)]
    if len(whole) == 1:
        return whole[0]
    if whole:
        raise StaleError(f"{folder} holds several sets; give the URL of one file:\n{lines(s[0] for s in whole)}")
    lacking = [f"{name}: missing, or without manifest" for names in sets for name in names if name not in there]
    raise StaleError(f"{folder} is not complete; copy the whole folder there:\n{lines(lacking)}")


def _adopted_set(folder: str, names: list[str], split: str | None) -> list[str]:
    if all("-of-" in name for name in names) or (len(names) == 1 and is_record_file(names[0])):
        return []  # names that tell which files there are: no manifest need be asked

    def load(name: str) -> Manifest | None:
        content = contents_of(f"{folder}/manifest", [f"{name}.json"])
        return Manifest.from_json(content[f"{name}.json"], name)

    return adopted_files(folder, names, split, load)


def _fetch(folder: str, names: list[str]) -> list[Found]:
    try:
        contents = contents_of(f"{folder}/manifest", [f"{name}.json" for name in names])
        sizes = sizes_of(folder, names)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no {error}; give the URL of a dataset, or of its files") from error
    found = []
    for name, size in zip(names, sizes, strict=True):
        manifest = Manifest.from_json(contents[f"{name}.json"], name)
        if manifest is None:
            raise StaleError(f"{folder}/manifest/{name}.json is not a readable manifest; copy the folder there again")
        found.append(Found(f"{folder}/{name}", manifest, size))
    return found
