"""The readers by name, each in one line. Imports nothing, so that definitions and `--help` can list them at once."""

READER_DESCRIPTIONS: dict[str, str] = {
    "naive": "one record after another: read, parse, batch",
    "prefetch": "naive, with the next batches made while training works on this one",
    "interleave": "records of several files in turn, read in parallel",
    "parallel_map": "one record after another, parsed in parallel",
    "vectorized": "batches of records, each parsed at once",
    "cache_memory": "vectorized, with the batches of the first epoch kept in memory for all others",
    "cache_file": "vectorized, with the batches of the first epoch kept in a temporary file for all others",
    "autotuned": "the whole recipe in its right order, with every degree of parallelism tuned by tf.data",
    "sharded": "the records of one worker of several: no record twice, none missing, whatever the files",
    "bounded": "any number of files with a hard ceiling on open files and memory",
    "file_queue": "worker processes read the files and hand serialized records over through a bounded queue",
    "merged": "the one merged file, batched, then parsed",
    "data_service": "tf.data service: a dispatcher and workers in processes of their own",
    "columnar": "the project's compiled decoder: bytes of records straight to columns",
}
READER_NAMES: tuple[str, ...] = tuple(READER_DESCRIPTIONS)
