"""`tfr_assets.write`: writes a program's data as TFRecord files. Imports little until it is called."""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit
from typing import TYPE_CHECKING, Any

from tfr_assets.errors import ConfigError, WriteError

if TYPE_CHECKING:
    from tfr_assets.records.frames.manifest import Manifest
    from tfr_assets.records.schema.feature_options import FeatureOptions
    from tfr_assets.records.schema.features import FeatureSpec
    from tfr_assets.sources.tables.class_names import ClassNames
    from tfr_assets.units import Advance
    from tfr_assets.writing.writers.registry import WriteFunction
    from tfr_assets.writing.writers.rows import Rows

_SPARE_FILES = 64  # that a process needs for other things


@dataclass(frozen=True)
class Written:
    """What `write` wrote.

    Attributes:
        paths: The files, in order; none where they were written to a URL.
        manifests: What each of them holds.
        writer: Name of the writer.
        workers: How many threads or processes worked.
        records: Number of records in all files.
        bytes: Size of all files.
        seconds: Time it took.
        urls: The files, in order, where they were written to a URL.
    """

    paths: tuple[Path, ...]
    manifests: "tuple[Manifest, ...]" = field(repr=False)
    writer: str
    workers: int
    records: int
    bytes: int
    seconds: float
    urls: tuple[str, ...] = ()


def write(
    data: Any,
    path: str | os.PathLike[str],
    *,
    shards: int | None = None,
    writer: "str | WriteFunction | None" = None,
    workers: int | None = None,
    ordered: bool = True,
    compression: str = "none",
    features: "FeatureOptions | None" = None,
    split: str = "train",
    progress: "bool | Advance | None" = None,
) -> Written:
    """Writes data as TFRecord files, each whole or not there, with index and manifest.

    ```python
    import tfr_assets

    tfr_assets.write(table, "flights.tfrecord")                    # one file
    tfr_assets.write(frames(), "out/flights", shards=16)           # out/flights/flights-train.tfrecord-00000-of-00016
    tfr_assets.read("out/flights")
    ```

    Rows become tf.Examples as the tables of `tfr_assets.records.schema.features` say. Tables, DataFrames, dicts of
    columns and lists are cut into consecutive shards that differ by one record at most. A generator or an Arrow
    reader is written while it runs, in little memory; block by block its rows go to one shard after the other, the
    same way every time (`tfr_assets.writing.writers.rows`). Of records that are serialized already, the features are
    inferred when they are written, as `tfr_assets.adopt` does, but not in an object store; of other bytes than
    tf.Examples, none are known.

    Args:
        data: An Arrow table, batch, reader, dataset or scanner; a DataFrame of pandas or polars, also a lazy one, or
            anything else that hands over Arrow (`__arrow_c_stream__`); a dict of columns; or an iterable of such
            tables, of dicts (each one record), of messages such as `tf.train.Example`, or of records that are
            serialized already (bytes). Names of classes in a table of Hugging Face's `datasets` are kept.
        path: A file, whose name holds `.tfrecord`; with `shards`, the folder for them, whose name they take. Or the URL
            of such a file or folder in an object store (`s3://`, `gs://`, `az://`): each file is written to the
            temporary folder of this machine and sent when it is whole, and its manifest last.
        shards: Number of files; None: one file.
        writer: A name of `tfr_assets.writing.writers.registry.WRITERS`, or a `WriteFunction`; None: `sharded_threads`
            for shards, and `single_writer_queue` for one file.
        workers: Threads or processes that work at once; None: one per processor.
        ordered: Whether records keep the order of their rows. If not, `single_writer_queue` writes them as they are
            ready, and the others keep the order all the same.
        compression: `none`, `gzip` or `zlib`.
        features: What to do with which column.
        split: Part of the shards' names.
        progress: True shows a bar on standard error; a function is called with the number of records just written.

    Raises:
        ConfigError: An argument is invalid.
        SourceError: The data is of no known form, raises, or changes its columns midway.
        SchemaError: A column, or a value, that a tf.Example cannot hold.
        WriteError: The file system or the store refused, somebody else writes to this URL, or a worker died; or several
            of the above, listed by shard. The shards that are not named are whole, and what lay under the others' names
            is as it was; of a URL, it may be gone, too.
    """
    import pyarrow as pa

    from tfr_assets.records.frames.compression import COMPRESSIONS
    from tfr_assets.records.schema.feature_options import FeatureOptions
    from tfr_assets.sources.tables.class_names import class_names
    from tfr_assets.writing.places import place_of
    from tfr_assets.writing.writers.outcome import NothingLeftError
    from tfr_assets.writing.writers.registry import DEFAULT_FOR_ONE_FILE, DEFAULT_FOR_SHARDS, writer_named
    from tfr_assets.writing.writers.rows import rows_of
    from tfr_assets.writing.writers.write_plan import WritePlan

    started = time.perf_counter()
    count = 1 if shards is None else shards
    place = place_of(path, shards, split)
    default = DEFAULT_FOR_SHARDS if count > 1 else DEFAULT_FOR_ONE_FILE
    function = writer if callable(writer) else writer_named(writer or default)
    if compression not in COMPRESSIONS:
        raise ConfigError(f"compression={compression!r} is none of {', '.join(COMPRESSIONS)}")
    if workers is not None and (not _is_integer(workers) or workers < 1):
        raise ConfigError(f"workers={workers!r} must be a positive integer, such as 2")
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ConfigError(f"progress={progress!r} must be True, False or a function that takes a number of records")
    if not (features is None or isinstance(features, FeatureOptions)):
        raise ConfigError(f"features={features!r} must be FeatureOptions, from tfr_assets")
    with _in_memory(place.shown):
        schema = data.schema if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader) else pa.schema([])
        rows = rows_of(data, count)
    _check_open_files(rows, count)
    spec = _features(rows, features, class_names(schema))
    with place.open() as target:
        plan = WritePlan(
            paths=target.paths,
            schema=rows.schema,
            features=spec,
            cast=(features or FeatureOptions()).cast,
            compression=compression,
            workers=workers or len(os.sched_getaffinity(0)),
            made_from={"write": uuid.uuid4().hex},  # so that a reader can distinguish files of two calls
            rows=rows.count,
            ordered=ordered,
        )
        with _shown(progress, rows.count) as shown:
            outcome = target.outcome(shown)
            with _in_memory(place.shown), suppress(NothingLeftError):
                function(plan, rows, outcome)
            outcome.check()
        manifests = tuple(outcome.manifests[shard] for shard in range(count))
        if spec is None:
            manifests = target.infer(manifests)
        target.describe(manifests[0].features)
    return Written(
        paths=place.paths,
        urls=place.urls,
        manifests=manifests,
        writer=str(getattr(function, "name", None) or getattr(function, "__name__", function)),
        workers=plan.workers,
        records=sum(manifest.records for manifest in manifests),
        bytes=sum(manifest.bytes for manifest in manifests),
        seconds=time.perf_counter() - started,
    )


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _features(rows: "Rows", options: "FeatureOptions | None", names: "ClassNames") -> "FeatureSpec | None":
    from tfr_assets.records.schema.derive import derive_spec
    from tfr_assets.sources.tables.class_names import extremes_of, fitting
    from tfr_assets.writing.writers.rows import TableRows, null_counts

    if not rows.serialized:
        extremes = {name: extremes_of(rows.table[name]) for name in names} if isinstance(rows, TableRows) else {}
        return derive_spec(rows.schema, null_counts(rows), options, fitting(names, extremes))
    if options is not None:
        raise ConfigError("features: the data consists of records that are serialized already, and has no columns")
    return None


def _check_open_files(rows: "Rows", count: int) -> None:
    from tfr_assets.writing.writers.rows import StreamRows

    most = getrlimit(RLIMIT_NOFILE)[0]
    if isinstance(rows, StreamRows) and 2 * count + _SPARE_FILES > most:
        raise ConfigError(
            f"shards={count}: data of unknown length keeps all shards open, two files each, and this process may open "
            f"{most}. Give fewer shards, raise `ulimit -n`, or give data whose length is known, such as a table"
        )


@contextmanager
def _shown(progress: "bool | Advance | None", rows: int | None) -> "Iterator[Advance | None]":
    """Yields the function to call with the number of records just written."""
    if progress is not True:
        yield progress or None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("records", total=rows)
        yield lambda records: bar.advance(task, records)


@contextmanager
def _in_memory(shown: str) -> Iterator[None]:
    """Raises a WriteError where memory is lacking outside of a shard's own work."""
    try:
        yield
    except MemoryError as error:
        raise WriteError(
            f"cannot write {shown}: there is not enough memory "
            f"({error or 'for the data'}); give it in smaller parts or records, or use fewer workers"
        ) from error
