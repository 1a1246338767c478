"""A dataset as other frameworks take it. Each is imported when it is asked for."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np

from tfr_assets.packages import need
from tfr_assets.reading.access.options import BatchInto, Even, positive_integer
from tfr_assets.reading.access.order import Order, Shuffle

if TYPE_CHECKING:
    import datasets

    from tfr_assets.reading.access.epochs import ResumableBatches
    from tfr_assets.reading.adapters.keras_batches import KerasBatches
    from tfr_assets.reading.adapters.torch_batches import TorchBatches

_SPAN_BYTES, _SPAN_RECORDS = 4 << 20, (16, 1024)  # of what Hugging Face's `datasets` takes at once


class BatchArguments(TypedDict, total=False):
    """Arguments of `Dataset.batches` that mean the same in a framework."""

    columns: Sequence[str] | None
    shuffle: Shuffle
    seed: int
    even: Even | None
    on_error: Literal["raise", "skip"]
    workers: int
    drop_remainder: bool


class InFrameworks(ABC):
    """What gives a dataset to frameworks."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, *args: Any, **kwargs: Any) -> Any:
        """See `Dataset`."""

    @abstractmethod
    def batches(self, *args: Any, **kwargs: Any) -> "ResumableBatches":
        """See `Dataset`."""

    @abstractmethod
    def _order(self, shuffle: Shuffle, seed: int) -> Order: ...

    @property
    @abstractmethod
    def _payload_bytes(self) -> int: ...

    def __getitems__(self, records: Sequence[int]) -> list[dict[str, Any]]:
        """Returns records at once: what PyTorch's `DataLoader` calls with a batch of numbers."""
        found: list[dict[str, Any]] = self.take(records, into="records")
        return found

    def _getitems(self, records: Sequence[int]) -> list[dict[str, Any]]:
        """Does the same: what Grain calls."""
        return self.__getitems__(records)

    def torch(
        self,
        batch_size: int = 4096,
        *,
        epochs: int | None = 1,
        shard: tuple[int, int] | None = None,
        **arguments: Unpack[BatchArguments],
    ) -> "TorchBatches":
        """Returns an IterableDataset of PyTorch's, of batches of tensors, for a `DataLoader` with `batch_size=None`.

        Each of the loader's workers reads its own share. Its `set_epoch` chooses the order of the next iteration; with
        StatefulDataLoader of torchdata, it can be stopped anywhere and continued. What becomes of each column:
        numbers are tensors without a copy; lists of varying length, and integers that may be null, nested tensors of
        layout `torch.jagged`; texts lists of str.

        Args:
            batch_size: Records a batch.
            epochs: In one iteration, each with its own order; None: without end.
            shard: `(rank, ranks)`: only the share of this process, which its workers divide.
            **arguments: As for `batches`. `workers` are threads of each worker.

        Raises:
            MissingPackage: PyTorch is not installed.
            ConfigError: An argument cannot be.
        """
        need("torch", "PyTorch", "`torch`", "`pip install 'tfr-assets[torch]'`")
        from tfr_assets.reading.adapters.torch_batches import TorchBatches

        self.batches(batch_size, into="torch", epochs=epochs, shard=shard, **arguments)  # refuses what cannot be
        ask = partial(self.batches, batch_size, into="torch", **arguments)
        return TorchBatches(ask, epochs, shard or (0, 1))

    def keras(
        self,
        batch_size: int,
        inputs: str | Sequence[str],
        target: str | None = None,
        *,
        shuffle: Shuffle = False,
        seed: int = 0,
        epoch: int = 0,
    ) -> "KerasBatches":
        """Returns batches as `fit`, `evaluate` and `predict` of Keras 3 take them, whatever its backend.

        Call `fit(…, shuffle=False)`: else Keras takes the batches of this order in another one, different in each run.

        Args:
            batch_size: Records a batch; the last one of an epoch has what is left.
            inputs: One column, for a model that takes an array; or a list, for one that takes a dict.
            target: The column to predict; None: the model needs none.
            shuffle: As for `batches`.
            seed: As for `batches`.
            epoch: Number of the first epoch, for training that goes on: `initial_epoch` of `fit`.

        Raises:
            MissingPackage: Keras is not installed.
            ConfigError: There is no such column or order, a column has no arrays of one shape, or `batch_size` is no
                positive integer.
        """
        need("keras", "Keras", "`keras`", "`pip install keras`")
        from tfr_assets.reading.adapters.keras_batches import KerasBatches

        batch_size = positive_integer("batch_size", batch_size)
        names = [inputs] if isinstance(inputs, str) else [*inputs]
        take = self._in_order("numpy", [*names, *([target] if target else [])], shuffle, seed)
        return KerasBatches(take, len(self), batch_size, inputs, target, epoch)

    def hugging_face(
        self, *, columns: Sequence[str] | None = None, shuffle: Shuffle = False, seed: int = 0, epoch: int = 0
    ) -> "datasets.IterableDataset":
        """Returns an `IterableDataset` of Hugging Face's `datasets`, with its `state_dict`, `shuffle`, `map`, ….

        Its `num_shards` are stretches of up to 1,024 records, not files: workers and ranks divide them.

        Args:
            columns: As for `batches`.
            shuffle: As for `batches`; in place of its own `shuffle`, or before it.
            seed: As for `batches`.
            epoch: Number of the epoch, each of which has its own order.

        Raises:
            MissingPackage: `datasets` is not installed.
            ConfigError: There is no such column or order.
        """
        need("datasets", "Hugging Face's datasets", "`hugging_face`", "`pip install 'tfr-assets[datasets]'`")
        from tfr_assets.reading.adapters.hugging_face import iterable_dataset

        take = partial(self._in_order("arrow", columns, shuffle, seed), epoch)
        least, most = _SPAN_RECORDS
        size = min(most, max(least, _SPAN_BYTES * len(self) // max(1, self._payload_bytes)))
        spans = [(first, min(len(self), first + size)) for first in range(0, len(self), size)]
        return iterable_dataset(take, take(0, 0).schema, spans or [(0, 0)])

    def _in_order(self, into: BatchInto, columns: Sequence[str] | None, shuffle: Shuffle, seed: int) -> Any:
        return partial(_take_in_order, self, self._order(shuffle, seed), columns, into)


def _take_in_order(
    dataset: InFrameworks, order: Order, columns: Sequence[str] | None, into: BatchInto,
    epoch: int, first: int, stop: int,
) -> Any:  # fmt: skip
    """Returns the records from a position of an epoch up to another."""
    return dataset.take(order.records(epoch, np.arange(first, stop)), into=into, columns=columns)
