"""Batches, epoch after epoch: an iterator that says where it is, and goes on from where another was."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Protocol

from tfr_assets.errors import ConfigError
from tfr_assets.reading.access.left import Positions, left_of, share_of_left
from tfr_assets.reading.access.options import BatchOptions
from tfr_assets.reading.access.order import Order
from tfr_assets.reading.access.state import State, joint_state
from tfr_assets.records.frames.skipped import Skipped


class Pass(Protocol):
    """One pass over a share: an iterator of batches that can be closed."""

    exact: bool
    """Whether every batch but the last is of so many positions, whatever was left out of it."""

    @property
    def skipped(self) -> Skipped:
        """What has been skipped so far."""

    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def close(self) -> None:
        """Ends its threads."""


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
    """

    def __init__(
        self, fingerprint: str, order: Order, options: BatchOptions, start: Callable[[Order, int, Positions], Pass]
    ) -> None:
        self._fingerprint, self._order, self._options, self._start = fingerprint, order, options, start
        self._epoch, self._taken = 0, []  # type: tuple[int, list[Any]]
        self._given = 0  # records of this pass, by count of batches
        self._pass: Pass | None = None
        self._skipped = Skipped()
        self._batches = self._run()

    def state(self) -> dict[str, Any]:
        """Returns where this iterator is: a few hundred bytes as JSON.

        It says how many records each worker has taken, provided that all have taken as many batches, as they do in
        step with each other and with `even`. Where they have not, keep the states of all of them.

        Raises:
            ConfigError: Records were left out because of damage, in a way that the place is not known.
        """
        if self._pass and not self._pass.exact and self._skipped_now().records:
            raise ConfigError(
                "damaged records were left out, so that batches do not tell the place in the epoch; use "
                "tfr_assets.open(…).batches(on_error='skip'), where they do"
            )
        order, options = self._order, self._options
        taken = [*self._taken, [options.shard[1], self._given]]
        return State(
            self._fingerprint, order.shuffle, order.block, order.seed, self._epoch, taken, options.batch_size
        ).to_json()

    def restore(self, state: dict[str, Any] | Sequence[dict[str, Any]]) -> None:
        """Goes on from where another iterator was, of the same data and order, on as many workers as there are now.

        What was left of its epoch comes exactly once, if all workers restore the same state. The seed is the state's.

        Args:
            state: What `state()` returned on any worker, if all had taken as many batches; else a list of all workers'
                states, in the order of their numbers.

        Raises:
            ConfigError: It is no state, or one of another order or version.
            StaleError: It is of other data.
        """
        states = list(state) if isinstance(state, Sequence) and not isinstance(state, str) else [state]
        if not states:
            raise ConfigError("there is no state to restore")
        found = joint_state([State.from_json(each) for each in states])
        found.check(self._fingerprint, self._order)
        self._batches.close()
        self._order = replace(self._order, seed=found.seed)
        taken = [list(entry) for entry in found.taken if entry[1]]
        self._epoch, self._taken, self._given = found.epoch, taken, 0
        self._batches = self._run()

    @property
    def epoch(self) -> int:
        """Number of the epoch that the last batch was of, from 0."""
        return self._epoch

    @property
    def skipped(self) -> Skipped:
        """What has been skipped so far: the number of records, and what was wrong with them."""
        return self._skipped + self._skipped_now()

    def __iter__(self) -> "ResumableBatches":
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def close(self) -> None:
        """Ends the threads; there are no more batches then."""
        self._batches.close()

    def __enter__(self) -> "ResumableBatches":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _skipped_now(self) -> Skipped:
        return self._pass.skipped if self._pass else Skipped()

    def _run(self) -> Generator[Any, None, None]:
        options, order = self._options, self._order
        while True:
            left = left_of(order.size, self._taken)
            share = share_of_left(left, options.shard, options.even)
            self._pass = self._start(order, self._epoch, share)
            try:
                with closing(self._pass):
                    for batch in self._pass:
                        self._given += options.batch_size  # beyond its own share, for those whose shares are longer
                        if options.even == "drop":
                            self._given = min(self._given, len(share))
                        yield batch
            finally:
                self._skipped, self._pass = self.skipped, None
            if not order.size or (options.epochs is not None and self._epoch + 1 >= options.epochs):
                return  # as the place is still in this epoch, which other workers may not have ended
            self._epoch, self._taken, self._given = self._epoch + 1, [], 0
