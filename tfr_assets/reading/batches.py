"""`tfr_assets.batches`: reading without TensorFlow."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfr_assets.reading.locate.file_sets import FileChoice, MissingSlices, SliceChoice

if TYPE_CHECKING:
    from tfr_assets.reading.access.epochs import ResumableBatches
    from tfr_assets.reading.access.left import Positions
    from tfr_assets.reading.access.order import Order, Shuffle
    from tfr_assets.reading.locate.record_files import RecordFiles


def batches(
    name: "str | os.PathLike[str] | RecordFiles",
    batch_size: int = 4096,
    *,
    into: Literal["numpy", "arrow", "pandas", "torch", "jax"] = "numpy",
    split: str | None = None,
    files: FileChoice | None = None,
    slices: SliceChoice | None = None,
    missing_slices: MissingSlices = "raise",
    columns: Sequence[str] | None = None,
    shuffle: "Shuffle" = False,
    seed: int = 0,
    epochs: int | None = 1,
    shard: tuple[int, int] | None = None,
    even: Literal["pad", "drop"] | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    workers: int = 2,
    drop_remainder: bool = False,
    max_record_bytes: int | None = None,
    root: Path | None = None,
) -> "ResumableBatches":
    """Reads a dataset back as batches of columns, without TensorFlow.

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
        into: `"numpy"`: a dict by column; `"arrow"`: a pyarrow.RecordBatch; `"pandas"`: a DataFrame;
            `"torch"`, `"jax"`: a dict of their tensors, which share the memory of the arrays where that can be.
        split: Which split, such as `"train"`; None: the only one, or `train`.
        files: `"shards"` or `"merged"`; None: the shards if all are there, else the merged file.
        slices: Of a dataset whose raw data comes in slices: the first and the last one, such as
            `("2026-03-01", "2026-03-07")`; a list of them; or a text such as `"last"`. Their records come in the order
            of the slices. None: all that are there.
        missing_slices: `"raise"`, or `"allow"` to leave out slices among these that are not there.
        columns: Those to decode, in this order; the others are skipped, which is faster. None: all.
        shuffle: False: in the order of the rows; or `"global"`, `"blocks"`, a number or True, as for the `batches` of
            `tfr_assets.open`; not of URLs.
        seed: Another number is another order. Each epoch has its own, the same in every run and on all workers.
        epochs: How many; None: without end.
        shard: `(index, count)`: only this worker's share of the records, a consecutive one. The shares of all indices
            are disjoint, hold every record, and differ by one record at most.
        even: What makes all workers have as many batches: `"pad"` gives a share that is one record short another one,
            `"drop"` leaves out the last of one that is longer. Not with `on_error="skip"`, unless with `shuffle`.
        on_error: `"raise"`, or `"skip"` to skip damaged records: the rest comes, then a warning says how many were
            lost and where. See `skipped` of what is returned. Without `shuffle`, batches are filled up with what
            follows, and do not tell their place: there is no `state` then; those of `tfr_assets.open` have one.
        workers: Threads that read and decode ahead, each a file, or a part of one where it is local. More than the
            processors help where storage is far.
        drop_remainder: Whether to leave out a last batch that is not full.
        max_record_bytes: Length beyond which a record is damage rather than read into memory; None: 256 MiB, or more if
            the manifest says that a file's records have more in all.
        root: Folder of all datasets; None: `$TFR_DATA`, else the project's `data`.

    Returns:
        An iterator, which can be stopped anywhere and continued on any number of workers: see its `state` and
        `restore`. Its threads end when it is exhausted, fails, is closed, or is dropped. A process that is forked after
            the first batch cannot go on with it.

    Raises:
        ConfigError: There is no such dataset, column, share, …, or a column holds what only TensorFlow can read.
        MissingPackage: What `into` names is not installed.
        StaleError: The files must be written (again) first; while iterating, one was replaced since it was opened.
        DamagedFile: A file differs from its manifest in size; while iterating, one cannot be read, or a record is
            damaged: the message says which, in which file and where.
        SourceError: While iterating, a remote file cannot be read.
        OutOfMemory: While iterating, records do not fit into memory.
    """
    from tfr_assets.errors import ConfigError
    from tfr_assets.reading.access.dataset import Dataset, fingerprint_of
    from tfr_assets.reading.access.epochs import ResumableBatches
    from tfr_assets.reading.access.options import BatchOptions
    from tfr_assets.reading.access.order import checked_shuffle, order_of
    from tfr_assets.reading.locate.files import locate
    from tfr_assets.reading.locate.record_files import RecordFiles
    from tfr_assets.reading.native.choose_columns import check_decodable, chosen_columns
    from tfr_assets.reading.native.convert import converter, keeps_nulls
    from tfr_assets.reading.native.decoded_batches import Batches

    options = BatchOptions(batch_size, into, epochs, shard, even, on_error, workers, drop_remainder)
    batch_size, workers, skip = options.batch_size, options.workers, options.skip
    if isinstance(name, RecordFiles):
        found = name
    else:
        found = locate(name, files, root, split, not skip, slices, missing_slices, max_record_bytes)
    found = found.absolute().with_limit(max_record_bytes)
    if checked_shuffle(shuffle):
        return Dataset(found, columns).batches(shuffle=shuffle, seed=seed, **vars(options))
    if skip and even:
        raise ConfigError(
            f"even={even!r} does not hold where damaged records are skipped in the files' order, since batches are "
            "filled up; use tfr_assets.open(…).batches(on_error='skip'), where they are not"
        )
    names = chosen_columns(found.features, columns)
    for column in names:
        check_decodable(found.features, column)
    convert, nulls = converter(found.features, names, into), keeps_nulls(into)

    def start(_order: "Order", _epoch: int, share: "Positions") -> Batches:
        return read_spans(share.spans)

    def read_spans(spans: Sequence[tuple[int, int]]) -> Batches:
        return Batches(found, names, batch_size, None, skip, workers, drop_remainder, convert, nulls=nulls, spans=spans)

    read_spans([]).close()  # what it refuses is refused at once
    order = order_of(found.records, 0, False, seed)
    return ResumableBatches(fingerprint_of(found), order, options, start, exact=not skip)
