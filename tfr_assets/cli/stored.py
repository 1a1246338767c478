"""What lies below a URL of an object store: datasets, as their manifests tell, without a project and its YAML."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfr_assets.cli.status import Status
from tfr_assets.errors import ConfigError
from tfr_assets.layout import SLICES
from tfr_assets.reading.locate.sets_there import dataset_of, sets_there
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.store import store_of
from tfr_assets.storage.remote_folders import contents_of

_MANIFEST = re.compile(r"((?P<folder>.+?)/)??((?P<part>shards|merged)/)?manifest/(?P<name>[^/]+)\.json")
_INVENTORY = re.compile(r"((?P<folder>.+)/)?raw/inventory\.json")
_SLICE = re.compile(rf"((?P<dataset>.+)/)?{SLICES}/(?P<key>[^/]+)")


@dataclass
class _Found:
    """The TFRecord files of a folder, as their manifests make them exist: names, and the keys of these manifests."""

    shards: dict[str, str] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)


def stored_datasets(url: str, by_slice: bool = False) -> list[Status]:
    """Looks at the datasets, and folders of TFRecord files, below a URL: by one listing, and their manifests.

    Args:
        url: Of a folder.
        by_slice: Whether each slice is a line of its own.

    Raises:
        ConfigError: It is no such URL, or no dataset lies there.
        SourceError: The store refused.
    """
    base = ObjectFolder(url.rstrip("/"))
    store_of(base.bucket)  # says what to install
    found = _found(base.walk())
    if not found:
        raise ConfigError(f"there is no dataset, and no TFRecord file with a manifest, below {base.url}")
    folders = [status for folder in sorted(found) for status in _statuses(base, folder, found[folder])]
    return folders if by_slice else sorted(_together(base, folders), key=lambda each: each.name)


def _found(keys: Collection[str]) -> dict[str, _Found]:
    found: dict[str, _Found] = defaultdict(_Found)
    for key in (key for key in keys if "/." not in f"/{key}"):
        if match := _INVENTORY.fullmatch(key):
            found[match["folder"] or ""]
        elif match := _MANIFEST.fullmatch(key):
            of_folder = found[match["folder"] or ""]
            above, _, name = key.removesuffix(".json").rpartition("manifest/")
            if above + name in keys:
                (of_folder.merged if match["part"] == "merged" else of_folder.shards)[match["name"]] = key
    return dict(found)


def _statuses(base: ObjectFolder, folder: str, found: _Found) -> Iterator[Status]:
    """Yields a line for each dataset whose files lie in a folder."""
    manifests = _manifests(base, found.shards or found.merged)
    shards = sets_there({name: manifests.get(name) for name in found.shards})
    datasets = sorted({*shards, *map(dataset_of, found.merged)}) if found.shards or found.merged else [""]
    for dataset in datasets:
        sets = shards.get(dataset, [])
        merged = [name for name in found.merged if dataset_of(name) == dataset]
        files = [name for each in sets for name in each.there] or merged
        name = f"{folder}/{dataset}".lstrip("/") if len(datasets) > 1 else folder
        yield Status(
            name=name or base.name or base.bucket.partition("://")[2],
            source="",
            rows=_records([manifests.get(name) for name in files]) if all(each.is_alone for each in sets) else None,
            shards=sum(each.count for each in sets),
            shards_written=sum(len(each.there) for each in sets),
            merged=bool(merged) and {each.stem for each in sets} <= {*merged},
            folder=base.url_of(folder) if folder else base.url,
        )


def _manifests(base: ObjectFolder, keys: Mapping[str, str]) -> dict[str, Manifest | None]:
    """Returns the manifests of files, by their keys; nothing, where one went since they were listed."""
    try:
        contents = contents_of(base.url, list(keys.values()))
    except FileNotFoundError:  # it is being written anew
        return {}
    return {name: Manifest.from_json(contents[key], name) for name, key in keys.items()}


def _records(manifests: Sequence[Manifest | None]) -> int | None:
    """Returns the number of records in files; None where their manifests do not tell."""
    known = [manifest.records for manifest in manifests if manifest]
    return sum(known) if known and len(known) == len(manifests) else None


def _together(base: ObjectFolder, folders: Iterable[Status]) -> Iterable[Status]:
    """Adds up the slices of each dataset."""
    slices: dict[str, list[Status]] = {}
    for each in folders:
        match = _SLICE.fullmatch(each.name)
        if match is None:
            yield each
        else:
            slices.setdefault(match["dataset"] or "", []).append(each)
    for dataset, several in slices.items():
        yield replace(
            several[0],
            name=dataset or base.name,
            rows=None if None in (rows := [each.rows for each in several]) else sum(filter(None, rows)),
            shards=sum(each.shards for each in several),
            shards_written=sum(each.shards_written for each in several),
            merged=all(each.merged for each in several),
            folder=base.url_of(dataset) if dataset else base.url,
            slices=len(several),
            slices_made=len(several),
        )
