"""`tfr_assets.batches`: reading without TensorFlow."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfr_assets.errors import ConfigError
from tfr_assets.reading.locate.file_sets import FileChoice

if TYPE_CHECKING:
    from tfr_assets.reading.locate.record_files import RecordFiles
    from tfr_assets.reading.native.decoded_batches import Batches
    from tfr_assets.records.schema.features import FeatureSpec


def batches(
    name: "str | os.PathLike[str] | RecordFiles",
    batch_size: int = 4096,
    *,
    into: Literal["numpy", "arrow", "pandas"] = "numpy",
    split: str | None = None,
    files: FileChoice | None = None,
    columns: Sequence[str] | None = None,
    shard: tuple[int, int] | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    workers: int = 2,
    drop_remainder: bool = False,
    max_record_bytes: int | None = None,
    root: Path | None = None,
) -> "Batches":
    """Reads a dataset back as batches of columns, in the order of its rows, without TensorFlow.

    ```python
    import tfr_assets

    for batch in tfr_assets.batches("flights", columns=["dep_delay", "carrier"]):
        batch["dep_delay"]             # float32 of shape (4096,), NaN where the column is null
        batch["carrier"].to_arrow()    # strings: bytes and offsets, which become an Arrow array without a copy
    ```

    All CRCs are checked. Values and types are those of the tables in `tfr_assets.reading.tensors.spec`, as:

    | there                  | `numpy`                        | `arrow`, `pandas`                                   |
    |------------------------|--------------------------------|-----------------------------------------------------|
    | dense numbers          | array (B, …)                   | the same type; inner sizes are fixed-size lists     |
    | strings                | `records.arrow.arrays.Strings` | large_string where the column was text, else binary |
    | ragged                 | `records.arrow.arrays.Ragged`  | large_list                                          |
    | absent scalar integers | an empty row of a `Ragged`     | null                                                |
    | absent strings         | empty                          | null                                                |

    Args:
        name: Name of a dataset, a path or a URL, as `tfr_assets.read` takes it; or files that are located already.
        batch_size: Records per batch; the last one has what is left.
        into: `"numpy"`: a dict by column; `"arrow"`: a pyarrow.RecordBatch; `"pandas"`: a DataFrame.
        split: Which split, such as `"train"`; None: the only one, or `train`.
        files: `"shards"` or `"merged"`; None: the shards if all are there, else the merged file.
        columns: Those to decode, in this order; the others are skipped, which is faster. None: all.
        shard: `(index, count)`: only this worker's share of the records, a consecutive one. The shares of all indices
            are disjoint, hold every record, and differ by one record at most.
        on_error: `"raise"`, or `"skip"` to skip damaged records: the rest comes, then a warning says how many were
            lost and where. See `Batches.skipped`.
        workers: Threads that read and decode ahead, each a file, or a part of one where it is local. More than the
            processors help where storage is far.
        drop_remainder: Whether to leave out a last batch that is not full.
        max_record_bytes: Length beyond which a record is damage rather than read into memory; None: 256 MiB, or more if
            the manifest says that a file's records have more in all.
        root: Folder of all datasets; None: `$TFR_DATA`, else the project's `data`.

    Returns:
        An iterator. Its threads end when it is exhausted, fails, is closed, or is dropped.

    Raises:
        ConfigError: There is no such dataset, column, share, …, or a column holds what only TensorFlow can read.
        StaleError: The files must be written (again) first; while iterating, one was replaced since it was opened.
        DamagedFile: A file differs from its manifest in size; while iterating, one cannot be read, or a record is
            damaged: the message says which, in which file and where.
        SourceError: While iterating, a remote file cannot be read.
        OutOfMemory: While iterating, records do not fit into memory.
    """
    from tfr_assets.reading.locate.files import locate
    from tfr_assets.reading.locate.record_files import RecordFiles
    from tfr_assets.reading.locate.shares import check_shard
    from tfr_assets.reading.native.choose_columns import chosen_columns
    from tfr_assets.reading.native.convert import converter
    from tfr_assets.reading.native.decoded_batches import Batches

    for option, value, least in (("batch_size", batch_size, 1), ("workers", workers, 1)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(f"{option}={value!r} must be a positive integer")
    if on_error not in ("raise", "skip"):
        raise ConfigError(f"on_error={on_error!r}: use 'raise' or 'skip'")
    fit = on_error != "skip"
    found = name if isinstance(name, RecordFiles) else locate(name, files, root, split, sizes_must_fit=fit)
    found = found.with_limit(max_record_bytes)
    names = chosen_columns(found.features, columns)
    for column in names:
        _check_decodable(found.features, column)
    if shard is not None:
        check_shard(shard)
    convert = converter(found.features, names, into)
    nulls = into != "numpy"
    return Batches(found, names, batch_size, shard, on_error == "skip", workers, drop_remainder, convert, nulls=nulls)


def _check_decodable(features: "FeatureSpec", column: str) -> None:
    from tfr_assets.records.schema.features import SERIALIZED

    feature = features.columns[column][0]
    if feature.part == SERIALIZED and feature.shape:
        raise ConfigError(
            f"column {column!r} holds serialized tensors, which only TensorFlow parses; leave it out with columns=, or "
            "read it with tfr_assets.read"
        )
