"""The readers: ways to turn files into batches. All give the same records; they differ in speed and in their limits.

A reader is a pure function of files and options, one entry here, and has the tests of every entry
(`tests/reading/test_readers.py`). Imports next to nothing, so that definitions and `--help` can list readers at once.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from tfr_assets.errors import ConfigError, suggestion
from tfr_assets.storage.file_names import is_remote

if TYPE_CHECKING:
    import tensorflow as tf

    from tfr_assets.reading.locate.record_files import RecordFiles
    from tfr_assets.reading.readers.options import ReadOptions

_OTHER_ORDER = "it reads several files in turn, so that records are not in the order of the rows"


@dataclass(frozen=True)
class Reader:
    """A reader. Calling it imports TensorFlow.

    Attributes:
        name: What `reader=` takes.
        function: Where it is, below `tfr_assets.reading.readers`.
        description: What it does, in one line.
        keeps_order: Whether records come in the order of the rows.
        reads_urls: Whether it reads remote storage.
        reads_memory: Whether it reads `memory://`, which other processes do not see.
        skips_damage: Whether it can leave damaged records out.
        uses_processes: Whether it starts processes.
        repeats: Whether it gives several epochs by itself, as `repeat` of its options says.
        parsed_by: What parses records: TensorFlow or our compiled kernels, in this process; or TensorFlow elsewhere.
        most_descriptors: Open files that one of its processes may have. 256 is the smallest limit that systems have.
        drawback: Why it is not recommended as a default, however fast it is; empty: it suits everybody.
    """

    name: str
    function: str
    description: str
    keeps_order: bool = True
    reads_urls: bool = True
    reads_memory: bool = True
    skips_damage: bool = True
    uses_processes: bool = False
    repeats: bool = False
    parsed_by: Literal["tensorflow", "kernels", "processes"] = "tensorflow"
    most_descriptors: int = 256
    drawback: str = ""

    def __call__(self, files: "RecordFiles", options: "ReadOptions") -> "tf.data.Dataset":
        """Returns the batches of files.

        Raises:
            ConfigError: The reader cannot read these files, or not as the options say.
            TfrError: As the reader's function says.
        """
        if options.on_error == "skip" and not self.skips_damage:
            raise ConfigError(
                f"reader {self.name!r} cannot leave damaged records out; use another with on_error='skip'"
            )
        if is_remote(files.paths[0]) and not self.reads_urls:
            raise ConfigError(
                f"reader {self.name!r} reads local files only, and {files.paths[0]} is a URL: leave "
                "reader= out, or use 'file_queue', which has worker processes that read URLs, too"
            )
        if files.paths[0].startswith("memory://") and not self.reads_memory:
            raise ConfigError(
                f"reader {self.name!r} reads in other processes, which do not see memory://; use another for it"
            )
        module, _, name = self.function.rpartition(".")
        dataset: tf.data.Dataset = getattr(import_module(f"{__package__}.readers.{module}"), name)(files, options)
        return dataset


READERS = {
    reader.name: reader
    for reader in (
        Reader("naive", "stepwise.naive", "one record after another: read, parse, batch"),
        Reader("prefetch", "stepwise.prefetch", "naive, with the next batches made while training works on this one"),
        Reader(
            "interleave",
            "stepwise.interleave",
            "records of several files in turn, read in parallel",
            keeps_order=False,
            drawback=_OTHER_ORDER,
        ),
        Reader("parallel_map", "stepwise.parallel_map", "one record after another, parsed in parallel"),
        Reader("vectorized", "stepwise.vectorized", "batches of records, each parsed at once"),
        Reader(
            "cache_memory",
            "cached.cache_memory",
            "vectorized, with the batches of the first epoch kept in memory for all others",
            drawback="it keeps all parsed records in memory, which is for you to decide",
        ),
        Reader(
            "cache_file",
            "cached.cache_file",
            "vectorized, with the batches of the first epoch kept in a temporary file for all others",
            drawback="it keeps all parsed records in a file, which is for you to decide",
        ),
        Reader(
            "autotuned",
            "autotuned.autotuned",
            "the whole recipe in its right order, with every degree of parallelism tuned by tf.data",
            keeps_order=False,
            drawback=f"{_OTHER_ORDER}; use it when record order does not matter",
        ),
        Reader(
            "sharded",
            "sharded.sharded",
            "the records of one worker of several: no record twice, none missing, whatever the files",
            keeps_order=False,
            drawback="it is for one worker of several, and shuffles",
        ),
        Reader(
            "bounded",
            "bounded.bounded",
            "any number of files with a hard ceiling on open files and memory",
            keeps_order=False,
            most_descriptors=64,
            drawback=f"{_OTHER_ORDER}; use it for thousands of files",
        ),
        Reader(
            "file_queue",
            "processes.file_queue.file_queue",
            "worker processes read the files and hand serialized records over through a bounded queue",
            keeps_order=False,
            reads_memory=False,
            uses_processes=True,
            drawback="it needs worker processes",
        ),
        Reader(
            "merged",
            "merged.merged",
            "the one merged file, batched, then parsed",
            drawback="it needs the merged file, and cannot read shards",
        ),
        Reader(
            "data_service",
            "processes.data_service.data_service",
            "tf.data service: a dispatcher and workers in processes of their own",
            keeps_order=False,
            reads_urls=False,
            reads_memory=False,
            skips_damage=False,
            uses_processes=True,
            parsed_by="processes",
            drawback="it needs a service in processes of its own",
        ),
        Reader(
            "columnar",
            "columnar.columnar",
            "the project's compiled decoder: bytes of records straight to columns",
            parsed_by="kernels",
        ),
        Reader(
            "resumable",
            "resumable.resumable",
            "batches by the numbers of their records, so that tf.train.Checkpoint saves iterators",
            skips_damage=False,
            repeats=True,
            parsed_by="kernels",
            drawback="it reads records by number, which costs more; use it where an iterator is saved",
        ),
    )
}
"""All readers by name, in the order in which they are listed and measured."""


def default_reader(files: "RecordFiles", checked: bool = True) -> str:
    """Returns the name of the reader of files of which no reader was measured: the fastest that can read them.

    Args:
        files: The files.
        checked: Whether damage is noticed, which our kernels always do; else, TensorFlow reads.
    """
    if checked:
        return "columnar"
    return "autotuned" if is_remote(files.paths[0]) else "vectorized"


def reader_named(name: str) -> Reader:
    """Returns a reader.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in READERS:
        raise ConfigError(f"there is no reader {name!r}; {suggestion(name, READERS, 'use one of')}")
    return READERS[name]
