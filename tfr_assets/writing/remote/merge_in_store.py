"""Merges TFRecord files by URL: the store joins them by itself where it can, so that no record passes through here."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfr_assets.errors import DamagedFile
from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.frames.compression import COMPRESSIONS
from tfr_assets.records.frames.examine import examine
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.merge import join_indexes, merge_files, merged_manifest
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.storage.atomic import atomic_file, refusals
from tfr_assets.storage.mirror import catch_up_files
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.lease import Lease, hold_lease
from tfr_assets.storage.objects.multipart import Source, abort_uploads, can_join, joining
from tfr_assets.storage.objects.publish import index_key, publish_file, reveal, withdraw
from tfr_assets.storage.spool import open_spool
from tfr_assets.units import Advance
from tfr_assets.urls import url_of
from tfr_assets.writing.remote.stand_in import StandIn, fetch_file, standing_in

Inputs = Sequence[tuple[Path, Manifest]]


def merge_to_url(
    there: StandIn, inputs: Inputs, sources: Sequence[Source | None], target: str,
    features: FeatureSpec | None, made_from: dict[str, Any],
) -> Manifest:  # fmt: skip
    """Joins verified files into an object, with index and manifest.

    Args:
        there: What stands in for the files.
        inputs: What stands in for each, and its manifest.
        sources: The objects, as they were before they were verified; None for local files.
        target: URL of the result.
        features: How records are parsed.
        made_from: What determines the content.

    Raises:
        WriteError: The store refused, or somebody else writes there.
        DamagedFile: A file was replaced meanwhile.
    """
    parent, _, name = target.rpartition("/")
    folder = ObjectFolder(parent)
    with hold_lease(folder, f".{name}.lock") as lease, open_spool() as spool:
        abort_uploads(folder, rf"(index/)?{re.escape(name)}(\.idx)?")
        joined = [source for source in sources if source]
        if len(joined) < len(inputs) or not _is_joined(inputs, [target, *(source.url for source in joined)]):
            fetch(there, [path for path, _ in inputs])
            manifest = merge_files(inputs, spool / name, features, made_from)
            publish_file(folder, spool / name, lease)
            return manifest
        with refusals(spool), atomic_file(index_path(spool / name)) as index:
            checksum = join_indexes(inputs, index)
        used = [item for item in zip(inputs, joined, strict=True) if item[0][1].records] or [(inputs[0], joined[0])]
        size = sum(source.size for _, source in used)
        manifest = merged_manifest(inputs, name, size, checksum, features, made_from)
        _join(folder, name, [source for _, source in used], spool, manifest, lease)
        return manifest


def merge_where_they_lie(
    inputs: Inputs, target: Path, features: FeatureSpec | None, made_from: dict[str, Any],
    progress: Advance | None = None,
) -> Manifest:  # fmt: skip
    """Joins verified files of a dataset as `merge_files`; in the store, where they lie in one.

    Raises:
        WriteError: The file system or the store refused, or somebody else writes there.
        DamagedFile: As `merge_files`.
        SourceError: The store refused to be read.
    """
    url, urls = url_of(target), [url_of(path) for path, _ in inputs]
    if url is None:
        return merge_files(inputs, target, features, made_from, progress)
    with standing_in([each for each in urls if each]) as there, there.named():
        copies = [(path, manifest) for path, (_, manifest) in zip(there.paths, inputs, strict=True)]
        sources = [there.source(path) for path in there.paths]
        manifest = merge_to_url(there, copies, sources, url, features, made_from)
    catch_up_files(target, index_path(target), manifest_path(target))
    if progress:
        progress(manifest.bytes)
    return manifest


def _is_joined(inputs: Inputs, urls: Sequence[str]) -> bool:
    """Whether the store can join these: it does that with bytes, of which there must be some."""
    compressions = {manifest.compression for _, manifest in inputs}
    concatenates = all(COMPRESSIONS[compression].concatenates for compression in compressions)
    return concatenates and len(compressions) == 1 and any(m.bytes for _, m in inputs) and can_join(urls)


def _join(
    folder: ObjectFolder, name: str, sources: Sequence[Source], spool: Path, manifest: Manifest, lease: Lease
) -> None:
    url = folder.url_of(name)
    with joining(sources, url), folder.uploading(index_key(name), index_path(spool / name)):
        withdraw(folder, name, lease)
    manifest.save(spool / name)
    with standing_in([url]) as result:
        report = result.report(examine(result.paths[0], manifest, opener=result.open))
    if not report.ok:
        raise DamagedFile(f"what the store joined is not what the files' manifests say: {report.faults[0]}; run again")
    reveal(folder, name, manifest_path(spool / name).read_bytes(), lease)


def fetch(there: StandIn, paths: Sequence[Path]) -> None:
    """Fetches files in place of what stands in for them.

    Raises:
        SourceError: The store refused.
        WriteError: There is no room for them.
    """
    for path in paths:
        if url := there.url(path):
            with refusals(path):
                fetch_file(url, path)
