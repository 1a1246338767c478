"""The readers by name: ways to turn files into batches. All give the same records; they differ in how fast.

A reader is a pure function of files and options, so that each can be measured like any other.
"""

from collections.abc import Callable

import tensorflow as tf

from tfr_assets.errors import ConfigError, suggestion
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.autotuned import autotuned
from tfr_assets.reading.readers.bounded import bounded
from tfr_assets.reading.readers.cached import cache_file, cache_memory
from tfr_assets.reading.readers.columnar import columnar
from tfr_assets.reading.readers.merged import merged
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.readers.processes.data_service import data_service
from tfr_assets.reading.readers.processes.file_queue import file_queue
from tfr_assets.reading.readers.sharded import sharded
from tfr_assets.reading.readers.stepwise import interleave, naive, parallel_map, prefetch, vectorized

__all__ = ["READERS", "ReadOptions", "Reader", "reader_named"]

Reader = Callable[[RecordFiles, ReadOptions], tf.data.Dataset]

READERS: dict[str, Reader] = {
    "naive": naive,
    "prefetch": prefetch,
    "interleave": interleave,
    "parallel_map": parallel_map,
    "vectorized": vectorized,
    "cache_memory": cache_memory,
    "cache_file": cache_file,
    "autotuned": autotuned,
    "sharded": sharded,
    "bounded": bounded,
    "file_queue": file_queue,
    "merged": merged,
    "data_service": data_service,
    "columnar": columnar,
}


def reader_named(name: str) -> Reader:
    """Returns a reader.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in READERS:
        raise ConfigError(f"there is no reader {name!r}; {suggestion(name, READERS, 'use one of')}")
    return READERS[name]
