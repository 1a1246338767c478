"""Batches for Keras' `fit`, whatever its backend."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from tfr_assets.errors import ConfigError, OutOfRange


class KerasBatches(keras.utils.PyDataset):
    """Batches by number, as `fit` of Keras takes them. Get it from a dataset's `keras`.

    ```python
    model.fit(flights.keras(256, inputs=["distance", "hour"], target="dep_delay", shuffle="global"), shuffle=False)
    ```

    Args:
        take: Gives the columns of the records from one position of an epoch up to another.
        size: Records of an epoch.
        batch_size: Records a batch; the last one has what is left.
        inputs: One column, for an array; or a list, for a dict of arrays.
        target: One column; None: there is none.
        epoch: Number of the first epoch.

    Attributes:
        epoch: Number of the epoch; each has its own order.
    """

    def __init__(
        self, take: Callable[[int, int, int], dict[str, Any]], size: int, batch_size: int, inputs: str | Sequence[str],
        target: str | None, epoch: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self._take, self._size, self._batch_size = take, size, batch_size
        self._inputs, self._target, self.epoch = inputs, target, epoch
        for name, column in take(0, 0, 0).items():
            if not isinstance(column, np.ndarray):
                raise ConfigError(
                    f"column {name!r} has no arrays of one shape, which Keras needs: it holds text, lists of varying "
                    "length, or integers with nulls; leave it out, or write it with `fill` or numbers in its place"
                )

    def __len__(self) -> int:
        return -(-self._size // self._batch_size)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if not -len(self) <= index < len(self):
            raise OutOfRange(f"there is no batch {index}; an epoch has {len(self)}, from 0 on")
        first = index % len(self) * self._batch_size
        columns = self._take(self.epoch, first, min(self._size, first + self._batch_size))
        inputs = (
            columns[self._inputs] if isinstance(self._inputs, str) else {each: columns[each] for each in self._inputs}
        )
        return (inputs,) if self._target is None else (inputs, columns[self._target])

    def follow(self) -> keras.callbacks.Callback:
        """Returns a callback for `fit` that gives each epoch its own order, by its number.

        With `initial_epoch`, or with `BackupAndRestore` after training was killed, the epochs that are left then have
        the batches of an unbroken run.
        """
        return _Follow(self)

    def on_epoch_end(self) -> None:
        """Goes on to the next epoch's order."""
        self.epoch += 1


class _Follow(keras.callbacks.Callback):
    def __init__(self, batches: KerasBatches) -> None:
        super().__init__()
        self._batches = batches

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        """Sets the order of the batches."""
        self._batches.epoch = epoch
