"""Which records of which file are read: of a whole set of files, or of one worker's share of it.

    worker 0 of 2            worker 1 of 2
    ├ file 0, all of it      ├ file 1, from record 50 on
    └ file 1, 50 records     └ file 2, all of it

The cut goes through the records of all files in order, so that shares differ by one record at most, whatever the files.
Where it goes through a segment, both workers read, and check, all of that segment, and use their part of its records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tfr_assets.errors import ConfigError
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.records.frames.segments import Range, segments_of
from tfr_assets.storage.pipe import has_ranges


def share_of(records: int, shard: tuple[int, int] | None) -> tuple[int, int]:
    """Returns the first record of a worker's share, and the one after its last: all shares differ by one at most.

    Raises:
        ConfigError: There is no such share.
    """
    if shard is None:
        return 0, records
    check_shard(shard)
    index, count = shard
    return index * records // count, (index + 1) * records // count


def check_shard(shard: object) -> None:
    """Refuses anything but a worker's share.

    Raises:
        ConfigError: It is not `(index, count)`.
    """
    match shard:
        case (int(index), int(count)) if 0 <= index < count and not isinstance(index, bool):
            return
    raise ConfigError(f"shard={shard!r} must be (index, count) with 0 <= index < count, such as (0, 4)")


def plan_files(files: RecordFiles, shard: tuple[int, int] | None = None) -> list[Range]:
    """Returns what one worker of several reads of each file: the whole files, if it is alone.

    All workers together get every record exactly once. A file is read from the last mark before the share, which its
    manifest has every 16 MB or so; a compressed one, or a remote one of no object store, from its beginning.

    Args:
        files: All files.
        shard: Which worker, and of how many; None: all.
    """
    return plan_span(files, share_of(files.records, shard), shard in (None, (0, 1)))


def plan_span(files: RecordFiles, span: tuple[int, int], empty: bool = False) -> list[Range]:
    """Returns what is read of each file for consecutive records of all.

    Args:
        files: All files.
        span: The first record, and the one behind the last.
        empty: Whether files without records are among them.
    """
    first, last = span
    ranges, before = [], 0
    for path, manifest in zip(files.paths, files.manifests, strict=True):
        begin, end = max(first - before, 0), min(last - before, manifest.records)
        before += manifest.records
        if begin < end or (not manifest.records and empty):
            at_once = manifest.compression != "none" or not has_ranges(path)
            segments = segments_of(manifest)
            needed = [s for s in segments if s.first < end and (at_once or s.first + s.records > begin)]
            read = tuple(needed) or segments[:1]
            ranges.append(Range(path, manifest, read, begin, end - begin, files.max_record_bytes))
    return ranges


def ranges_of(planned: Iterable[Range]) -> Iterator[Range]:
    """Yields the same, cut where it can be decoded in parallel: a segment each, where no other must be read before."""
    for each in planned:
        if not each.records:
            continue
        if each.manifest.compression != "none" or not has_ranges(each.path):
            yield each
            continue
        for segment in each.segments:
            first, stop = max(each.first, segment.first), min(each.stop, segment.first + segment.records)
            yield replace(each, segments=(segment,), first=first, records=stop - first)
