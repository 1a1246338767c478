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
    memory. Of files in object stores, what is asked for is fetched, by many requests at once; all of it is of the
    version that was opened. Compressed files are decompressed once, into temporary files. TFRecord files of other
    origin, without manifests, are read to their ends now: to check them, to find their records, and to infer their
    features. `tfr_assets.adopt` keeps what was found.

    Args:
        name: Name of a dataset, a path, or the URL of one in an object store, as `tfr_assets.read` takes them.
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
            only once. Files that have changed since are read again. None: nothing is kept.
        max_record_bytes: Length beyond which a record is damage where a file without index is looked through.
        root: Folder of all datasets; None: `$TFR_DATA`, else the project's `data`.

    Raises:
        ConfigError: There is no such dataset, path, split or column, or it is a URL of which no parts can be fetched.
        StaleError: The files must be written (again) first: some are missing, or they are of several versions.
        DamagedFile: A file is missing; or one without manifest is damaged.
        SchemaError: Records of files without manifests are no tf.Examples, or not of one kind.
        SourceError: A store refuses.
        WriteError: `cache` cannot be written to.
        OutOfMemory: The records do not fit into memory, with `in_memory`.
    """
    from tfr_assets.reading.access.dataset import Dataset
    from tfr_assets.reading.locate.files import locate
    from tfr_assets.reading.locate.foreign import undescribed_files

    if slices is None and (undescribed := undescribed_files(name, split)):
        return _foreign(undescribed, columns, in_memory, max_record_bytes, cache)
    # a cut file has records, and is noticed when read
    found = locate(name, files, root, split, False, slices, missing_slices)
    return Dataset(found.absolute().with_limit(max_record_bytes), columns, in_memory)


def _foreign(
    paths: Sequence[Path], columns: Sequence[str] | None, in_memory: bool, max_record_bytes: int | None,
    cache: str | os.PathLike[str] | None,
) -> "Dataset":  # fmt: skip
    import numpy as np

    from tfr_assets.reading.access.dataset import Dataset
    from tfr_assets.reading.access.open_files import Scanned
    from tfr_assets.reading.locate.foreign_cache import known_files
    from tfr_assets.reading.locate.record_files import RecordFiles

    paths = [path.absolute() for path in paths]
    found = known_files(paths, max_record_bytes, None if cache is None else Path(cache))
    spec = found[0].manifest.features
    assert spec
    manifests = tuple(each.manifest for each in found)
    files = RecordFiles(tuple(map(str, paths)), manifests, spec).with_limit(max_record_bytes)
    bounds = [np.cumsum([0, *each.sizes.tolist()], dtype=np.int64) for each in found]
    scanned = {i: Scanned(each.identity, bounds[i]) for i, each in enumerate(found)}
    return Dataset(files, columns, in_memory, scanned)
