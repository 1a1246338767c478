"""`tfr_assets.open`: what a program calls that reads records by number, without TensorFlow."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfr_assets.reading.locate.file_sets import FileChoice, MissingSlices, SliceChoice

if TYPE_CHECKING:
    from tfr_assets.reading.access.dataset import Dataset


def open(
    name: str | os.PathLike[str],
    *,
    split: str | None = None,
    files: FileChoice | None = None,
    slices: SliceChoice | None = None,
    missing_slices: MissingSlices = "raise",
    columns: Sequence[str] | None = None,
    in_memory: bool = False,
    cache: str | os.PathLike[str] | None = None,
    max_record_bytes: int | None = None,
    root: Path | None = None,
) -> "Dataset":
    """Opens a dataset, to read any of its records by number, or batches in any order, without TensorFlow.

    ```python
    import tfr_assets

    flights = tfr_assets.open("flights", columns=["distance", "carrier"])
    flights[17], flights.take([5, 3], into="arrow"), len(flights)
    ```

    Manifests are opened now, files and their indexes when a record of them is asked for: 8 bytes a record stay in
    memory. Of files by URL, what is asked for is fetched, by many requests at once; all of it is of the version that
    was opened. Compressed files are decompressed once, into temporary files; so are files copied of which their server
    gives no parts, or tells no version. TFRecord files of other origin, without manifests, are read to their ends now:
    to check them, to find their records, and to infer their features. `tfr_assets.adopt` keeps what was found of local
    ones, `cache` that of any.

    Args:
        name: Name of a dataset, a path, or a URL, as `tfr_assets.read` takes them.
        split: Which split, such as `"train"`; None: the only one, or `train`.
        files: `"shards"` or `"merged"`; None: the shards if all are there, else the merged file.
        slices: Of a dataset whose raw data comes in slices: the first and the last one, such as
            `("2026-03-01", "2026-03-07")`; a list of them; or a text such as `"last"`. Their records come in the order
            of the slices. None: all that are there.
        missing_slices: `"raise"`, or `"allow"` to leave out slices among these that are not there.
        columns: Those to decode, in this order; None: all.
        in_memory: Whether to read and check all records now and keep them, each process its own unless it is forked.
            Then records come in any order about as fast as in their own.
        cache: Folder in which is kept what was found in files without manifests, so that they are read to their ends
            only once. Files that have changed since are read again. None: nothing is kept of local files, and of those
            by URL in `~/.cache/tfr-assets/foreign`.
        max_record_bytes: Length beyond which a record is damage where a file without index is looked through.
        root: Folder of all datasets; None: `$TFR_DATA`, else the project's `data`.

    Raises:
        ConfigError: There is no such dataset, path, split or column, or nothing reads such URLs.
        StaleError: The files must be written (again) first: some are missing, or they are of several versions.
        DamagedFile: A file is missing; or one without manifest is damaged.
        SchemaError: Records of files without manifests are no tf.Examples, or not of one kind.
        SourceError: A store or server refuses.
        WriteError: `cache` cannot be written to.
        OutOfMemory: The records do not fit into memory, with `in_memory`.
    """
    from tfr_assets.reading.access.dataset import Dataset
    from tfr_assets.reading.locate.files import locate
    from tfr_assets.reading.locate.foreign import undescribed_files
    from tfr_assets.reading.locate.foreign_cache import foreign_files

    kept_in = None if cache is None else Path(cache)
    if slices is None and (undescribed := undescribed_files(name, split)):
        found = foreign_files([path.absolute() for path in undescribed], max_record_bytes, kept_in)
    else:
        # a cut file has records, and is noticed when read
        found = locate(name, files, root, split, False, slices, missing_slices, max_record_bytes, kept_in)
    return Dataset(found.absolute().with_limit(max_record_bytes), columns, in_memory)
