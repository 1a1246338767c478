"""`tfr_assets.read`: what training code calls."""

import os
from pathlib import Path

import tensorflow as tf

from tfr_assets.reading.locate import FileChoice, locate
from tfr_assets.reading.pipelines import ReadOptions, reader_named


def read(
    name: str | os.PathLike[str],
    batch_size: int = 1024,
    *,
    split: str | None = None,
    files: FileChoice | None = None,
    reader: str = "vectorized",
    drop_remainder: bool = False,
    root: Path | None = None,
) -> tf.data.Dataset:
    """Reads a dataset back as batches of typed tensors, with nothing to declare.

    ```python
    import tfr_assets

    flights = tfr_assets.read("flights", batch_size=256)
    flights.element_spec["distance"]     # TensorSpec(shape=(None,), dtype=tf.int64): known before a file is opened
    for batch in flights:
        batch["origin"]                  # tf.string, (256,); the last batch has what is left
        batch["dep_delay"]               # tf.float32, NaN where the column is null
    ```

    Which column becomes which tensor stands in the tables of `tfr_assets.reading.spec`: absent floats are NaN, absent
    bytes empty, absent integers an empty row of a ragged tensor unless the dataset's `fill` says otherwise, and lists
    of varying length are ragged tensors.

    Args:
        name: Name of a dataset; or a path: of a dataset's folder, of a folder of its files, or of one of them. A string
            is a path when it holds a `/`, `.` or `~`.
        batch_size: Records a batch.
        split: Which split, such as `"train"`; None: the only one, or `train`.
        files: `"shards"` or `"merged"`; None: the shards if all are there, else the merged file.
        reader: How to read; see `tfr_assets.reading.pipelines.READERS`.
        drop_remainder: Whether to leave out a last batch that is not full; then the batch size is part of all shapes.
        root: Folder of all datasets; None: `$TFR_DATA`, else the project's `data`.

    Returns:
        A dataset of dicts from feature name to `tf.Tensor` or `tf.RaggedTensor`, in the order of the dataset's rows.
        Its cardinality is known.

    Raises:
        ConfigError: There is no such dataset, path, split, reader or choice, or the batch size is none.
        StaleError: The files must be written (again) first: some are missing, or they are of several versions.
        DamagedFile: A file differs from its manifest in size.

    Damage that only shows in mid-read is an error of TensorFlow's while iterating: `DataLossError` for bytes that fail
    their CRC, `FailedPreconditionError` for files that end early. Neither says which file: `tfr verify` on their folder
    does, with record and offset. `reader="columnar"` says all of it in its own error.
    """
    options = ReadOptions(batch_size, drop_remainder)
    pipeline = reader_named(reader)
    return pipeline(locate(name, files, root, split), options)
