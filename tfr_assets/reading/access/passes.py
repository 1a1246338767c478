"""A pass over some positions of an epoch, record by record, in any order."""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

from tfr_assets.reading.access.decode import RecordDecoder
from tfr_assets.reading.access.left import Positions
from tfr_assets.reading.access.options import BatchOptions
from tfr_assets.reading.access.order import Order
from tfr_assets.reading.native.read_ahead import Ahead
from tfr_assets.reading.native.skipped_count import Tally
from tfr_assets.records.examples.ranges import Columns, row_count
from tfr_assets.records.frames.skipped import MOST_FAULTS, Skipped

_MORE = 4  # times as many batches are read together as before


class AnyOrder:
    """A pass over records in any order, a batch at a time. See `epochs.Pass`.

    Args:
        order: Which record comes at which position.
        epoch: Number of the epoch.
        share: The positions.
        options: What is asked for; each worker is a thread that reads and decodes.
        together: Batches that are read together at the most.
        new_decoder: Makes a decoder for a thread.
        idle: Decoders that no thread uses, with the memory that they have worked in: from one pass to the next.
        names: The columns, in their order.
        convert: What becomes of each batch.
    """

    def __init__(
        self, order: Order, epoch: int, share: Positions, options: BatchOptions, together: int,
        new_decoder: Callable[[], RecordDecoder], idle: list[RecordDecoder], names: tuple[str, ...],
        convert: Callable[[Columns], Any],
    ) -> None:  # fmt: skip
        self._order, self._epoch, self._share = order, epoch, share
        self._options, self._together = options, together
        self._new_decoder, self._idle, self._names, self._convert = new_decoder, idle, names, convert
        rest = len(share) % options.batch_size if options.drop_remainder else 0
        self._stop = len(share) - rest
        self._tally = Tally()
        self._batches = self._run()

    @property
    def skipped(self) -> Skipped:
        """See `epochs.Pass`."""
        return self._tally.skipped

    def __iter__(self) -> "AnyOrder":
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def close(self) -> None:
        """See `epochs.Pass`."""
        self._batches.close()

    def _run(self) -> Generator[Any, None, None]:
        tasks = (partial(self._decode, each) for each in self._windows())
        ahead = Ahead(tasks, self._options.workers, max(2, self._together // _MORE))
        try:
            for columns in ahead:
                yield self._convert({name: columns[name] for name in self._names})
        finally:
            ahead.close()
        self._tally.warn(self._stop)

    def _windows(self) -> Iterator[Positions]:
        """Yields the positions that are read together: a batch's, so that it comes at once, then ever more."""
        first, batches = 0, 1
        while first < self._stop:
            stop = min(self._stop, first + batches * self._options.batch_size)
            yield self._share.part(first, stop)
            first, batches = stop, min(_MORE * batches, self._together)

    def _decode(self, positions: Positions, put: Callable[[Columns], None]) -> None:
        decoder = self._idle.pop() if self._idle else self._new_decoder()
        records = self._order.records(self._epoch, positions.to_numpy())
        left = len(records)
        for columns, faults in decoder.decode_all(records, size := self._options.batch_size):
            if faults:
                lost = min(size, left) - row_count(columns)
                self._tally.add(Skipped(lost, tuple(faults.values())[:MOST_FAULTS]))
            left -= size
            put(columns)
        self._idle.append(decoder)
