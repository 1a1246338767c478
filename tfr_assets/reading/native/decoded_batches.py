"""TFRecord bytes → batches of columns by compiled kernels, without TensorFlow."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from tfr_assets.errors import ConfigError, OutOfMemory
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.locate.shares import plan_span, ranges_of, share_of
from tfr_assets.reading.native.read_ahead import Ahead, Task
from tfr_assets.reading.native.skipped_count import Tally
from tfr_assets.reading.native.streams import open_range
from tfr_assets.records.arrow.arrays import concatenate
from tfr_assets.records.examples.ranges import Columns, RangeDecoder, row_count
from tfr_assets.records.frames.compression import InputStream
from tfr_assets.records.frames.segments import Range
from tfr_assets.records.frames.skipped import Skipped


class Batches:
    """Batches of columns, decoded ahead.

    Args:
        files: What to read.
        names: The columns, by base name.
        batch_size: Rows of a batch.
        shard: Which part of the records, and of how many; None: all.
        skip: Whether damaged records are skipped.
        workers: Number of threads.
        drop_remainder: Whether to leave out a last batch that is not full.
        convert: What happens to each batch.
        order: Shuffles what is decoded at once; None: all comes in the order of the rows.
        at_once: Whether consecutive batches come as one where they lie in one piece of memory.
        nulls: Whether absent strings are distinguished from empty ones, as `records.examples.decoder.Decoder` says.
        tensor_strings: Whether single strings are as TensorFlow takes them, as it says, too.
        spans: Instead of `shard`: the first of some consecutive records and the one behind the last, of each span.

    Raises:
        ConfigError: The spec holds what cannot be decoded here.
    """

    def __init__(
        self,
        files: RecordFiles,
        names: tuple[str, ...],
        batch_size: int,
        shard: tuple[int, int] | None,
        skip: bool = False,
        workers: int = 2,
        drop_remainder: bool = False,
        convert: Callable[[Columns], Any] = lambda columns: columns,
        order: np.random.Generator | None = None,
        at_once: bool = False,
        nulls: bool = False,
        tensor_strings: bool = False,
        spans: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        if not names:
            raise ConfigError("columns: there is none to read; name at least one")
        self._tally = Tally()
        spans = [share_of(files.records, shard)] if spans is None else spans
        ranges = ranges_of(chain.from_iterable(plan_span(files, span) for span in spans))
        decoder = partial(RangeDecoder, files.features, names, _open, skip, nulls, tensor_strings)
        decoder()  # what it refuses is refused at once
        if order:
            shuffled = list(ranges)
            order.shuffle(shuffled)
            ranges = iter(shuffled)
        cut = whole_batches if at_once else rebatch
        self._batches = _convert_all(
            ranges, files, names, decoder, workers, lambda pieces: cut(pieces, batch_size, drop_remainder),
            convert, self._tally, sum(stop - first for first, stop in spans),
        )  # fmt: skip

    @property
    def skipped(self) -> Skipped:
        """What has been skipped so far: the number of records, and what was wrong with them."""
        return self._tally.skipped

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def close(self) -> None:
        """Ends the threads; there are no more batches then."""
        self._batches.close()

    def __enter__(self) -> "Batches":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _convert_all(
    ranges: Iterator[Range], files: RecordFiles, names: tuple[str, ...], new_decoder: Callable[[], RangeDecoder],
    workers: int, cut: Callable[[Iterator[Columns]], Iterator[Columns]], convert: Callable[[Columns], Any],
    tally: Tally, count: int,
) -> Generator[Any, None, None]:  # fmt: skip
    own = threading.local()

    def decode(wanted: Range, put: Callable[[Columns], None]) -> None:
        if not hasattr(own, "decoder"):
            own.decoder = new_decoder()
        tally.add(own.decoder.decode(wanted, put))

    tasks: Iterator[Task[Columns]] = (lambda put, wanted=wanted: decode(wanted, put) for wanted in ranges)  # type: ignore[misc]
    ahead = Ahead(tasks, workers)
    try:
        for batch in cut(ahead):
            yield convert({name: batch[name] for name in names})
    except MemoryError as error:
        raise OutOfMemory(
            f"there is no memory for the batches of {files.paths[0]} and what is read with it; "
            "use a smaller batch_size, or fewer workers or columns"
        ) from error
    finally:
        ahead.close()
    tally.warn(count)


def _open(wanted: Range) -> AbstractContextManager[InputStream]:
    return open_range(wanted)


def rebatch(pieces: Iterator[Columns], batch_size: int, drop_remainder: bool = False) -> Iterator[Columns]:
    """Yields the rows of pieces of any size as batches: views of a piece, unless a batch lies in several."""
    for columns in whole_batches(pieces, batch_size, drop_remainder):
        for start in range(0, row_count(columns), batch_size):
            yield _cut(columns, start, start + batch_size)


def whole_batches(pieces: Iterator[Columns], batch_size: int, drop_remainder: bool = False) -> Iterator[Columns]:
    """Yields the rows of pieces of any size, as many whole batches of a piece at once as there are in it."""
    waiting: list[Columns] = []
    held = 0
    for piece in pieces:
        rows, start = row_count(piece), 0
        if held:
            start = min(rows, batch_size - held)
            waiting.append(_cut(piece, 0, start))
            held += start
            if held == batch_size:
                yield _concatenate(waiting)
                waiting, held = [], 0
        stop = rows - (rows - start) % batch_size
        if start < stop:
            yield _cut(piece, start, stop)
        if stop < rows and start < rows:
            waiting, held = [_cut(piece, stop, rows)], rows - stop
    if held and not drop_remainder:
        yield _concatenate(waiting)


def _cut(columns: Columns, start: int, stop: int) -> Columns:
    return {name: column[start:stop] for name, column in columns.items()}


def _concatenate(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return {name: concatenate([part[name] for part in parts]) for name in parts[0]}
