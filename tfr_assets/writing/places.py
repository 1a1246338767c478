"""Where `write` puts files: a folder of this machine, or of an object store.

To a store, a file is first written as to a disk, into a folder among the temporary files, and sent when it is whole.
What then lies in the store are the files that a local folder would have, byte by byte.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfr_assets.errors import ConfigError, SourceError, TfrError, WriteError
from tfr_assets.layout import MAX_SHARDS, Layout, check_split_name, feature_spec_path, shard_keys
from tfr_assets.storage.objects.store import refuse_url
from tfr_assets.urls import SCHEMES, is_object_url

if TYPE_CHECKING:
    from tfr_assets.records.frames.manifest import Manifest
    from tfr_assets.records.schema.features import FeatureSpec
    from tfr_assets.storage.objects.folder import ObjectFolder
    from tfr_assets.storage.objects.lease import Lease
    from tfr_assets.units import Advance
    from tfr_assets.writing.writers.outcome import Outcome

_DATASET = ("raw", "shards", "merged")  # folders of one


@dataclass(frozen=True)
class Target:
    """A place while it is written to.

    Attributes:
        paths: The files to write, on this machine.
        outcome: Returns what the writers report to, given who is told of the progress.
        infer: Returns the manifests with the features of records that were serialized already, where these are known.
        describe: Saves what describes the shards, once all are there, and removes those of another number.
    """

    paths: tuple[Path, ...]
    outcome: "Callable[[Advance | None], Outcome]"
    infer: "Callable[[tuple[Manifest, ...]], tuple[Manifest, ...]]"
    describe: "Callable[[FeatureSpec | None], None]"


@dataclass(frozen=True)
class LocalPlace:
    """A file, or a folder of shards, of this machine.

    Attributes:
        paths: The files.
        shards: Pattern of the names of all shards that may be removed; None: it is one file.
        urls: None.
    """

    paths: tuple[Path, ...]
    shards: str | None
    urls: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """What messages call it."""
        return f"{self.paths[0]}{' and others' if len(self.paths) > 1 else ''}"

    @contextmanager
    def open(self) -> Iterator[Target]:
        """Prepares it for new files.

        Raises:
            WriteError: The file system refused.
        """
        from tfr_assets.storage.atomic import refusals
        from tfr_assets.writing.export.tfds import withdraw_tfds_files
        from tfr_assets.writing.foreign.adopt import described
        from tfr_assets.writing.writers.outcome import Outcome

        folder = self.paths[0].parent
        if self.shards is not None:
            with refusals(folder):
                if folder.is_dir():
                    withdraw_tfds_files(folder)  # what they say of the shards will not hold
        yield Target(
            self.paths,
            lambda progress: Outcome(self.paths, progress),
            lambda manifests: described(self.paths, manifests),
            self._describe,
        )

    def _describe(self, features: "FeatureSpec | None") -> None:
        from tfr_assets.storage.atomic import refusals
        from tfr_assets.writing.shard import save_feature_spec
        from tfr_assets.writing.stray import remove_strays

        if self.shards is None:
            return
        folder, names = self.paths[0].parent, [path.name for path in self.paths]
        with refusals(folder):
            if features is None:
                feature_spec_path(folder).unlink(missing_ok=True)
            else:
                save_feature_spec(folder, features, names)
            remove_strays(folder, self.shards, set(names), only_with_manifest=True)


@dataclass(frozen=True)
class StorePlace:
    """A file, or a folder of shards, of an object store.

    Attributes:
        url: Of the folder.
        names: The files.
        shards: As in `LocalPlace`.
    """

    url: str
    names: tuple[str, ...]
    shards: str | None

    @property
    def shown(self) -> str:
        """What messages call it."""
        return f"{self.urls[0]}{' and others' if len(self.names) > 1 else ''}"

    @property
    def urls(self) -> tuple[str, ...]:
        """URLs of the files."""
        return tuple(f"{self.url}/{name}" for name in self.names)

    @property
    def paths(self) -> tuple[Path, ...]:
        """None: there is no path of them."""
        return ()

    @contextmanager
    def open(self) -> Iterator[Target]:
        """Prepares it for new files: nobody else writes there meanwhile.

        Raises:
            ConfigError: It is a dataset's folder, or a file where a folder must be.
            WriteError: Somebody else writes there, or the store refused.
            MissingPackage: The package that reaches it is not installed.
        """
        from tfr_assets.storage.objects.folder import ObjectFolder
        from tfr_assets.storage.objects.lease import hold_lease
        from tfr_assets.storage.objects.multipart import abort_uploads
        from tfr_assets.storage.objects.store import store_of
        from tfr_assets.storage.spool import open_spool
        from tfr_assets.writing.export.tfds import INFO

        folder = ObjectFolder(self.url)
        store_of(folder.bucket)  # says what to install
        ours = self.shards or re.escape(self.names[0])
        self._check_is_free(folder)
        with hold_lease(folder, ".lock" if self.shards else f".{self.names[0]}.lock") as lease, open_spool() as spool:
            abort_uploads(folder, rf"(index/)?{ours}(\.idx)?")
            if self.shards:
                folder.delete([INFO])  # without it, nothing is read of what will not hold
            paths = tuple(spool / name for name in self.names)
            sender = _Sender(folder, lease)
            yield Target(
                paths,
                lambda progress: sender.outcome(paths, progress),
                lambda manifests: manifests,  # the records are in the store by then
                lambda features: self._describe(sender, features),
            )

    def _check_is_free(self, folder: "ObjectFolder") -> None:
        try:
            is_dataset = self.shards is not None and any(folder.list(part) for part in _DATASET)
        except SourceError as error:
            raise WriteError(str(error)) from error
        if is_dataset:
            raise ConfigError(_is_dataset(self.url))

    def _describe(self, sender: "_Sender", features: "FeatureSpec | None") -> None:
        from tfr_assets.writing.shard import feature_spec

        if self.shards is None:
            return
        sender.lease.check()
        key = feature_spec_path(Path()).name
        if features is None:
            sender.folder.delete([key])
        else:
            sender.folder.put(key, feature_spec(features, self.names))
        remove_from_store(sender.folder, sender.lease, self.shards, set(self.names))


@dataclass(frozen=True)
class _Sender:
    """Sends files that are whole to a folder of a store."""

    folder: "ObjectFolder"
    lease: "Lease"

    def outcome(self, paths: tuple[Path, ...], progress: "Advance | None") -> "Outcome":
        """Returns what sends each shard when it is reported as finished, and reports it then."""
        from tfr_assets.storage.objects.publish import publish_file
        from tfr_assets.writing.writers.outcome import Outcome

        sender = self

        class Sending(Outcome):
            def finished(self, shard: int, manifest: "Manifest") -> None:
                try:
                    publish_file(sender.folder, paths[shard], sender.lease)
                    _remove(paths[shard])
                except TfrError as error:
                    self.failed(shard, error)
                else:
                    super().finished(shard, manifest)

        return Sending(paths, progress, self.folder.url)


def remove_from_store(folder: "ObjectFolder", lease: "Lease", pattern: str, current: set[str]) -> list[str]:
    """Removes files as `writing.stray.remove_strays` does, only those with a manifest, and returns their names.

    Args:
        folder: Where they lie.
        lease: What the writer holds.
        pattern: Regular expression of the whole names of those that may go.
        current: Names of those that stay.

    Raises:
        WriteError: The store refused, or the lease is lost.
        SourceError: The store refused to be read.
    """
    from tfr_assets.records.frames.manifest import Manifest
    from tfr_assets.storage.objects.publish import index_key, manifest_key

    removed = []
    names = {key.removesuffix(".json") for key in folder.list("manifest")}
    for name in sorted(filter(re.compile(pattern).fullmatch, names - current)):
        if Manifest.from_json(folder.get(manifest_key(name)) or b"", name):
            lease.check()
            folder.delete([name, index_key(name), manifest_key(name)])
            removed.append(name)
    return removed


def place_of(path: str | os.PathLike[str], shards: int | None, split: str) -> LocalPlace | StorePlace:
    """Returns where files go. Nothing is asked of a store yet.

    Args:
        path: As `write` takes it.
        shards: As `write` takes it.
        split: As `write` takes it.

    Raises:
        ConfigError: An argument is invalid.
        WriteError: The file system refused.
    """
    from tfr_assets.storage.atomic import refusals

    if isinstance(path, str) and is_object_url(path):
        return _store_place(path, shards, split)
    if not isinstance(path, str | os.PathLike) or "://" in os.fspath(path):
        schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise ConfigError(f"path={path!r} must be a path on this machine, or a URL that begins with {schemes}")
    refuse_url(path)
    local = Path(path).expanduser().absolute()
    with refusals(local):
        return _local_place(local, shards, split)


def _local_place(path: Path, shards: int | None, split: str) -> LocalPlace:
    if shards is None:
        _check_file_name(str(path), path.name)
        if path.is_dir():
            raise ConfigError(
                f"path={str(path)!r} is a folder; give the name of a file, or `shards` and another folder"
            )
        return LocalPlace((path,), None)
    _check_shards(str(path), path.name, shards, is_file=path.is_file())
    if any((path / part).is_dir() for part in _DATASET):
        raise ConfigError(_is_dataset(str(path)))
    names, pattern = _shard_names(path.name, shards, split)
    return LocalPlace(tuple(path / name for name in names), pattern)


def _store_place(url: str, shards: int | None, split: str) -> StorePlace:
    from tfr_assets.urls import split_url

    bucket, key = split_url(url)
    folder, _, name = f"{bucket}/{key}".rpartition("/")
    if shards is None:
        _check_file_name(url, name)
        return StorePlace(folder, (name,), None)
    _check_shards(url, name, shards, is_file=False)
    names, pattern = _shard_names(name, shards, split)
    return StorePlace(f"{folder}/{name}", names, pattern)


def _check_file_name(path: str, name: str) -> None:
    if ".tfrecord" not in name:
        raise ConfigError(f"path={path!r}: a file's name must hold '.tfrecord'; for a folder, give `shards`, too")


def _check_shards(path: str, name: str, shards: object, is_file: bool) -> None:
    if not isinstance(shards, int) or isinstance(shards, bool) or not 1 <= shards <= MAX_SHARDS:
        raise ConfigError(f"shards={shards!r} is not between 1 and {MAX_SHARDS}")
    if ".tfrecord" in name or is_file:
        raise ConfigError(f"path={path!r}: with `shards`, give the folder for them; for one file, leave `shards` out")


def _is_dataset(path: str) -> str:
    return f"path={path!r} is the folder of a dataset; give another one, which only these shards use"


def _shard_names(folder: str, shards: int, split: str) -> tuple[tuple[str, ...], str]:
    """Returns the shards' names, and the pattern of all names that a set of this split may have."""
    check_split_name(split)
    Layout(folder, Path(folder))  # refuses a name that hides where the split's begins
    prefix = f"{folder}-{split}.tfrecord-"
    names = tuple(prefix + key.removeprefix(f"{split}-") for key in shard_keys(split, shards))
    return names, re.escape(f"{folder}-{split}") + r"\.tfrecord-\d{5}-of-\d{5}"


def _remove(file: Path) -> None:
    from tfr_assets.layout import index_path, manifest_path

    for path in (file, index_path(file), manifest_path(file)):
        path.unlink(missing_ok=True)
