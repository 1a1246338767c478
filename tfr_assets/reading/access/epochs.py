"""Batches, epoch after epoch: an iterator that says where it is, and goes on from where another was."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tfr_assets.errors import ConfigError
from tfr_assets.reading.access.left import Positions, left_of, share_of_left
from tfr_assets.reading.access.options import BatchOptions
from tfr_assets.reading.access.order import Order
from tfr_assets.reading.access.state import State, joint_state
from tfr_assets.records.frames.skipped import Skipped


class Pass(Protocol):
    """One pass over a share: an iterator of batches that can be closed."""

    @property
    def skipped(self) -> Skipped:
        """What has been skipped so far."""

    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def close(self) -> None:
        """Ends its threads."""


_Start = Callable[[Order, int, Positions], Pass]


@dataclass
class _Place:
    """Where an iterator is.

    Attributes:
        order: Of the records.
        epoch: Number of the epoch.
        history: What had been taken when it was restored, of this epoch and of later ones; see `left`.
        skipped: What was skipped in passes that have ended.
        given: Records of this pass, by count of batches.
        count: Batches of this pass.
        fewest: Batches that each worker has in this epoch at least.
        is_last: Whether this epoch is the last one.
        in_step: Whether workers that have taken as many batches have all ended the same epochs.
        now: This pass.
    """

    order: Order
    epoch: int = 0
    history: Sequence[Any] = ()
    skipped: Skipped = field(default_factory=Skipped)
    given: int = 0
    count: int = 0
    fewest: int = 0
    is_last: bool = False
    in_step: bool = True
    now: Pass | None = None

    @property
    def taken(self) -> Sequence[Any]:
        """What had been taken of this epoch when it was restored."""
        return self.history[0] if self.history else []

    @property
    def stands_for_all(self) -> bool:
        """Whether workers that have taken as many batches are in the same epoch, or have ended the last one."""
        return self.in_step and (self.is_last or self.count <= self.fewest)

    @property
    def all_skipped(self) -> Skipped:
        """What has been skipped so far."""
        return self.skipped + self.now.skipped if self.now else self.skipped


class ResumableBatches:
    """Batches of columns, decoded ahead. Get them from `tfr_assets.batches` or a dataset's `batches`.

    ```python
    import tfr_assets

    batches = tfr_assets.open("flights").batches(256, shuffle="global", epochs=3)
    first = next(batches)
    state = batches.state()  # a dict for JSON

    batches = tfr_assets.open("flights").batches(256, shuffle="global", epochs=3)
    batches.restore(state)  # the next batch is the second
    ```

    Args:
        fingerprint: Of the data.
        order: Of the records.
        options: What is asked for.
        start: Begins a pass over some positions of an epoch.
        exact: Whether every batch but the last is of so many positions, whatever was left out of it.
    """

    def __init__(
        self, fingerprint: str, order: Order, options: BatchOptions, start: _Start, exact: bool = True
    ) -> None:
        self._fingerprint, self._options, self._start, self._exact = fingerprint, options, start, exact
        self._place, self._process = _Place(order), 0
        self._batches = _run(self._place, options, start)

    def state(self) -> dict[str, Any]:
        """Returns where this iterator is: a few hundred bytes as JSON.

        It says how many records each worker has taken, provided that all have taken as many batches, as they do in
        step with each other. Where they have not, keep the states of all of them. Without `even`, shares may differ by
        a batch, so that after an epoch workers in step are at different places: then it stands for this worker only,
        and `restore` asks for those of all.

        Raises:
            ConfigError: Damaged records are left out in a way that the place is not known.
        """
        if not self._exact:
            raise ConfigError(
                "with on_error='skip', these batches do not tell the place in the epoch; use "
                "tfr_assets.open(…).batches(on_error='skip'), where they do"
            )
        place, order, options = self._place, self._place.order, self._options
        taken, later = [*place.taken, [options.worker[1], place.given]], place.history[1:]
        return State(
            self._fingerprint, order.shuffle, order.block, order.seed, place.epoch, taken, options.batch_size, later,
            place.stands_for_all,
        ).to_json()  # fmt: skip

    def restore(self, state: dict[str, Any] | Sequence[dict[str, Any]]) -> None:
        """Goes on from where another iterator was, of the same data and order, on as many workers as there are now.

        What was left of its epoch comes exactly once, if all workers restore the same state; with `even`, but for the
        record that "pad" repeats, or "drop" leaves out. The seed is the state's.

        Args:
            state: What `state()` returned on any worker, if all had taken as many batches; else a list of all workers'
                states, in the order of their numbers. These may be in different epochs.

        Raises:
            ConfigError: It is no state, or one of another order or version; or one worker's, which does not tell where
                the others are.
            StaleError: It is of other data.
        """
        states = list(state) if isinstance(state, Sequence) and not isinstance(state, str) else [state]
        if not states:
            raise ConfigError("there is no state to restore")
        found = joint_state([State.from_json(each) for each in states], self._place.order.size)
        found.check(self._fingerprint, self._place.order)
        self._batches.close()
        order, skipped = replace(self._place.order, seed=found.seed), self._place.skipped
        self._place = _Place(order, found.epoch, [found.taken, *found.later], skipped=skipped)
        self._batches = _run(self._place, self._options, self._start)

    @property
    def epoch(self) -> int:
        """Number of the epoch that the last batch was of, from 0."""
        return self._place.epoch

    @property
    def skipped(self) -> Skipped:
        """What has been skipped so far: the number of records, and what was wrong with them."""
        return self._place.all_skipped

    def __iter__(self) -> "ResumableBatches":
        return self

    def __next__(self) -> Any:
        self._process = self._process or os.getpid()
        if self._process != os.getpid():
            raise ConfigError(
                "this iterator was started before the process was forked, and its threads are not in the new one; "
                "ask for batches there"
            )
        return next(self._batches)

    def close(self) -> None:
        """Ends the threads; there are no more batches then."""
        self._batches.close()

    def __enter__(self) -> "ResumableBatches":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run(place: _Place, options: BatchOptions, start: _Start) -> Generator[Any, None, None]:
    """Yields batches. It does not hold their iterator, so that dropping this one ends the threads at once."""
    while True:
        left = left_of(place.order.size, place.taken)
        share = share_of_left(left, options.worker, options.even)
        place.fewest, most = _batches_of_workers(len(left), options)
        place.is_last = options.epochs is not None and place.epoch + 1 >= options.epochs
        place.now = start(place.order, place.epoch, share)
        try:
            with closing(place.now) as batches:
                for batch in batches:
                    place.count += 1
                    place.given += options.batch_size  # beyond its own share, for those whose shares are longer
                    if options.even == "drop":
                        place.given = min(place.given, len(share))
                    yield batch
        finally:
            place.skipped, place.now = place.all_skipped, None
        if place.count < most or not (place.is_last or place.fewest == most):
            place.in_step = False  # from now on, this worker is ahead of others, or may be
        if place.is_last or (not place.count and not place.taken):  # in no other epoch there would be more batches
            return  # as the place is still in this epoch, which other workers may not have ended
        place.epoch, place.history, place.count, place.given = place.epoch + 1, place.history[1:], 0, 0


def _batches_of_workers(left: int, options: BatchOptions) -> tuple[int, int]:
    """Returns how many batches a worker has of what is left of an epoch: at least, and at most."""
    workers, size = options.worker[1], options.batch_size
    shares = [left // workers, -(-left // workers)]
    if options.even:
        shares = [shares[0 if options.even == "drop" else 1]] * 2
    least, most = (share // size if options.drop_remainder else -(-share // size) for share in shares)
    return least, most
