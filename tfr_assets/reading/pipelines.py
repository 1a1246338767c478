"""The readers: named ways to turn files into batches. All give the same batches; they differ in how fast.

    vectorized   files one after another → records → batch → parse whole batches in parallel → prefetch
    columnar     compiled kernels decode batches in threads → tensors, in parallel → prefetch

A reader is a pure function of files and options, so that each can be measured like any other.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf

from tfr_assets.errors import ConfigError
from tfr_assets.reading.files import RecordFiles
from tfr_assets.reading.spec import Tensors, parser

_COMPRESSION_TYPES = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}  # TensorFlow takes any other word for none


@dataclass(frozen=True)
class ReadOptions:
    """What batches to give.

    Attributes:
        batch_size: Records a batch; the last one has what is left.
        drop_remainder: Whether to leave out a last batch that is not full.

    Raises:
        ConfigError: The batch size is no positive integer.
    """

    batch_size: int = 1024
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.batch_size, int) or isinstance(self.batch_size, bool) or self.batch_size < 1:
            raise ConfigError(f"batch_size={self.batch_size!r} must be a positive integer, such as 1024")


Reader = Callable[[RecordFiles, ReadOptions], tf.data.Dataset]


def vectorized(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads one file after another and parses whole batches in parallel.

    For small records this is the best stock pipeline: interleaving single records costs more than it saves.
    """
    batches = _records(files).batch(options.batch_size, drop_remainder=options.drop_remainder)
    return batches.map(_parser(files), num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def columnar(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Reads batches that compiled kernels decode; damage is an error that names file, record and byte."""
    from tfr_assets.reading.columnar_dataset import columnar_batches  # numba: only who asks for it pays

    return columnar_batches(files, options.batch_size, options.drop_remainder)


READERS: dict[str, Reader] = {"vectorized": vectorized, "columnar": columnar}


def reader_named(name: str) -> Reader:
    """Returns a reader.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in READERS:
        close = difflib.get_close_matches(str(name), READERS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(READERS)}"
        raise ConfigError(f"there is no reader {name!r}; {hint}")
    return READERS[name]


def _records(files: RecordFiles) -> tf.data.Dataset:
    """Returns the serialized records, as many as the manifests say or an error.

    TensorFlow alone takes a file that is cut between two records for a shorter one.
    """
    records = tf.data.TFRecordDataset(list(files.paths), _COMPRESSION_TYPES[files.compression])
    return records.apply(tf.data.experimental.assert_cardinality(files.records))


def _parser(files: RecordFiles) -> Callable[[tf.Tensor], Tensors]:
    return parser(files.features)
