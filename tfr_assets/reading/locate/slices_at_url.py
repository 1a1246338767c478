"""The slices of a dataset at the URL of an object store: found by one listing, and read as those of a folder are."""

import re
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.layout import SLICES, SLICES_FILE, says_mixed
from tfr_assets.reading.locate.file_sets import CHOICES, FileChoice, MissingSlices, SliceChoice, is_record_file
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.locate.remote import locate_url, names_described
from tfr_assets.reading.locate.slices import choose_slices, join_slices, warn_of_unfinished
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.store import is_reached, store_of
from tfr_assets.urls import is_object_url, split_url

if TYPE_CHECKING:
    from tfr_assets.sources import Slices

_AT_ONCE = 8  # slices that are located, by some requests each
_FILES = re.compile(r"[^/]+/[^/]+/manifest/.+")
_FINISHED = re.compile(r"([^/]+)/(?:shards/feature_spec\.json|merged/manifest/[^/]+\.json)")
_BEGUN = re.compile(r"([^/]+)/(?:raw/inventory\.json|shards/manifest/[^/]+\.json)")


@dataclass(frozen=True)
class SlicesThere:
    """The slices of a dataset at a URL.

    Attributes:
        url: Of the dataset's folder.
        there: Keys of those that were made.
        unfinished: Keys of those whose inventory was taken, but that have no files, or not all.
        known: Which there can be; None: that is not saved.
        written: Whether any of them has files.
    """

    url: str
    there: frozenset[str]
    unfinished: tuple[str, ...]
    known: "Slices | None"
    written: bool

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.url.rpartition("/")[2]


def slices_at(url: str) -> SlicesThere | None:
    """Returns the slices of the dataset at a URL; None: it has none, or it lies in no object store.

    Raises:
        SourceError: The store refused.
    """
    url = url.rstrip("/")
    if not is_reached(url) or is_record_file(url.rpartition("/")[2]):
        return None
    folder = ObjectFolder(f"{url}/{SLICES}")
    keys = folder.walk()
    written = any(map(_FILES.fullmatch, keys))
    if SLICES_FILE not in keys and not written:
        return None
    from tfr_assets.sources import load_slices

    there = _keys(_FINISHED, keys)
    content = folder.get(SLICES_FILE) if SLICES_FILE in keys else None
    known = load_slices(content) if content else None
    return SlicesThere(url, there, tuple(sorted(_keys(_BEGUN, keys) - there)), known, written)


def locate_slices(
    found: SlicesThere,
    files: FileChoice | None,
    split: str | None,
    sizes_must_fit: bool,
    slices: SliceChoice | None,
    missing: MissingSlices,
) -> RecordFiles:
    """Returns the files of some slices as one set. Arguments and errors as for `locate`."""
    own = [part for part in CHOICES if names_described(f"{found.url}/{part}")] if found.written else []
    if own:
        raise StaleError(says_mixed(found.url, own))
    keys = choose_slices(slices, missing, found.there, found.known, found.name)
    if slices is None:
        warn_of_unfinished(found.unfinished, found.name)

    def of_slice(key: str) -> RecordFiles:
        return locate_url(f"{found.url}/{SLICES}/{key}", files, split, sizes_must_fit)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return join_slices(dict(zip(keys, pool.map(of_slice, keys), strict=True)))


def check_none_chosen(url: str, slices: SliceChoice | None) -> None:
    """Refuses to choose among the slices of what has none, or where they are not known.

    Raises:
        ConfigError: Some were chosen.
        MissingPackage: The package is not installed that would tell which there are.
    """
    if slices is None:
        return
    if is_object_url(url):
        store_of(split_url(url)[0])  # says what to install
        raise ConfigError(f"slices={slices!r}: {url} is no dataset with slices; leave it out")
    raise ConfigError(
        f"slices={slices!r}: {url} is in no object store, so that nothing tells which slices are there; give the URL "
        "of the folder of one slice"
    )


def _keys(pattern: "re.Pattern[str]", found: Collection[str]) -> frozenset[str]:
    return frozenset(match[1] for match in map(pattern.fullmatch, found) if match)
