"""`tfr_assets.read`: reading as a `tf.data.Dataset`. TensorFlow is imported by the first call."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfr_assets.errors import ConfigError
from tfr_assets.packages import need
from tfr_assets.reading.locate.file_sets import FileChoice, MissingSlices, SliceChoice

if TYPE_CHECKING:
    import tensorflow as tf

    from tfr_assets.reading.locate.record_files import RecordFiles

_SHUFFLE = 10_000


def read(
    name: str | os.PathLike[str],
    batch_size: int = 1024,
    *,
    split: str | None = None,
    files: FileChoice | None = None,
    slices: SliceChoice | None = None,
    missing_slices: MissingSlices = "raise",
    reader: str | None = None,
    shuffle: bool | int = False,
    seed: int | None = None,
    shard: tuple[int, int] = (0, 1),
    columns: Sequence[str] | None = None,
    decode: bool | Collection[str] | Mapping[str, tuple[int | None, ...] | None] = False,
    repeat: int | None = 1,
    on_error: Literal["raise", "skip", "unchecked"] = "raise",
    drop_remainder: bool = False,
    max_record_bytes: int | None = None,
    root: Path | None = None,
) -> "tf.data.Dataset":
    """Reads a dataset back as batches of typed tensors, with nothing to declare.

    ```python
    import tfr_assets

    flights = tfr_assets.read("flights", batch_size=256)
    flights.element_spec["distance"]     # TensorSpec(shape=(None,), dtype=tf.int64): known before a file is opened
    for batch in flights:
        batch["origin"]                  # tf.string, (256,); the last batch has what is left
        batch["dep_delay"]               # tf.float32, NaN where the column is null

    tfr_assets.read("digits", shuffle=True, decode=True, columns=["image/encoded", "image/class/label"])
    tfr_assets.read("flights", shard=(worker, workers), shuffle=True, repeat=None)      # one of several workers
    tfr_assets.read("https://example.org/flights/shards")                               # or s3://, gs://, memory://
    ```

    Which column becomes which tensor stands in the tables of `tfr_assets.reading.tensors.spec`: absent floats are NaN,
    absent bytes empty, absent integers an empty row of a ragged tensor unless the dataset's `fill` says otherwise, and
    lists of varying length are ragged tensors.

    Args:
        name: Name of a dataset; or a path: of a dataset's folder, of a folder of its files, or of one of them; or the
            URL of any of these. A string is a path when it holds a `/`, `.` or `~`.
        batch_size: Records per batch.
        split: Which split, such as `"train"`; None: the only one, or `train`.
        files: `"shards"` or `"merged"`; None: the shards if all are there, else the merged file.
        slices: Of a dataset whose raw data comes in slices: the first and the last one, such as
            `("2026-03-01", "2026-03-07")`; a list of them; or a text such as `"last"`. Their records come in the order
            of the slices. None: all that are there.
        missing_slices: `"raise"`, or `"allow"` to leave out slices among these that are not there.
        reader: How to read; see `tfr_assets.reading.registry`. None: the one that was measured to be the best here, if
            that was measured, else `columnar`; where nothing is checked, `vectorized`, and `autotuned` for a URL.
        shuffle: Whether to draw records at random, from 10,000 or from as many as given, and files in random order.
        seed: Makes that order the same in every run, but with `data_service`, whose workers race; it differs from
            epoch to epoch all the same.
        shard: Which part of the records, and of how many: `(0, 4)` for the first of four workers. All together get
            each record once; parts differ by one record at most.
        columns: Which tensors to give; None: all. Others are not parsed.
        decode: True: encoded images become uint8 tensors, recordings float samples; see
            `tfr_assets.reading.tensors.media`. Or some features' names, or a dict from these to the shape that all
            have, such as `{"image/encoded": (28, 28, 1)}`, for dense tensors.
        repeat: Epochs; None: without end.
        on_error: `"raise"`: damage is an error that names file, record and byte. `"skip"`: damaged records are left
            out, and a warning says which. `"unchecked"`: TensorFlow's own errors, which name nothing.
        drop_remainder: Whether to leave out a last batch that is not full; then the batch size is part of all shapes.
        max_record_bytes: Length beyond which a record is damage rather than read into memory; None: 256 MiB, or more if
            the manifest says that a file's records have more in all. Not with `on_error="unchecked"`.
        root: Folder of all datasets; None: `$TFR_DATA`, else the project's `data`.

    Returns:
        A dataset of dicts from feature name to `tf.Tensor` or `tf.RaggedTensor`, in the order of the dataset's rows
        unless it is shuffled or the reader promises none. Its cardinality is known, but with `on_error="skip"`.

    Raises:
        ConfigError: There is no such dataset, path, split, reader, column or choice, or a number is invalid.
        StaleError: The files must be written (again) first: some are missing, or they are of several versions.
        DamagedFile: A file differs from its manifest in size.
        MissingPackage: TensorFlow is not installed.

    Iterators are saved by `tf.train.Checkpoint` with `reader="resumable"`, and with them all that follows and that
    TensorFlow can save. Shuffled, give it a seed, so that another process goes on in the same order.

    What was opened is what is read, and records of two versions never mix. Damage, or a file that a refresh replaced
    since, is a `tf.errors.InvalidArgumentError` while iterating; its message names file, record, byte and kind of what
    is wrong, or says that the dataset must be opened again.
    """
    need(
        "tensorflow", "TensorFlow", "`tfr_assets.read`",
        "`pip install tensorflow`. `tfr_assets.batches` reads without it",
    )  # fmt: skip
    from tfr_assets.reading.locate.files import locate
    from tfr_assets.reading.native.choose_columns import with_columns
    from tfr_assets.reading.readers.options import ReadOptions
    from tfr_assets.reading.registry import reader_named
    from tfr_assets.reading.tensors.media import decoded_features

    if repeat is not None and (not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1):
        raise ConfigError(f"repeat={repeat!r} must be a positive number of epochs, or None: without end")
    found = locate(name, files, root, split, on_error != "skip", slices, missing_slices, max_record_bytes)
    found = with_columns(found, columns).with_limit(max_record_bytes)
    options = ReadOptions(
        batch_size,
        drop_remainder,
        shuffle=_SHUFFLE if shuffle is True else shuffle or 0,
        seed=seed,
        shard=shard,
        repeat=repeat,
        decode=decoded_features(found.features, decode),
        on_error=on_error,
    )
    pipeline = reader_named(_best_for(found, on_error != "unchecked") if reader is None else reader)
    dataset = pipeline(found, options)
    return dataset if repeat == 1 or pipeline.repeats else dataset.repeat(repeat)


def _best_for(files: "RecordFiles", checked: bool) -> str:
    from tfr_assets.reading.recommendation import recommended_reader
    from tfr_assets.reading.registry import default_reader
    from tfr_assets.storage.file_names import is_remote

    path = files.paths[0]
    measured = recommended_reader(Path(path).parent.parent) if checked and not is_remote(path) else None
    return measured or default_reader(files, checked)
