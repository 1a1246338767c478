"""Batches as a dataset of PyTorch's, each of whose workers reads its own share, and can be stopped and continued."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from tfr_assets.errors import ConfigError
from tfr_assets.reading.adapters.resumable import Ask

_MARK = "tfr_assets"


class TorchBatches(IterableDataset):
    """Batches of tensors for a `DataLoader(…, batch_size=None)`. Get it from a dataset's `torch`.

    ```python
    from torchdata.stateful_dataloader import StatefulDataLoader

    loader = StatefulDataLoader(flights.torch(256, shuffle="global"), batch_size=None, num_workers=2)
    for batch in loader:
        batch["distance"]
    state = loader.state_dict()  # for load_state_dict, or of all ranks for `restore`
    ```

    Args:
        ask: Asks for batches of a share.
        epochs: In one iteration; None: without end.
        shard: `(rank, ranks)` of this process. Its workers divide its share.
    """

    def __init__(self, ask: Ask, epochs: int | None, shard: tuple[int, int]) -> None:
        super().__init__()
        self._ask, self._epochs, self._shard = ask, epochs, shard
        # seen by all workers, also by those that stay: the next epoch, and which iteration goes on from the states
        self._epoch, self._resumed = (torch.zeros((), dtype=torch.int64).share_memory_() for _ in range(2))
        self._states: list[dict[str, Any]] | None = None
        self._stop: int | None = None

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch the next iteration begins with, so that its order is another one than before.

        Args:
            epoch: Its number, from 0.
        """
        self._epoch.fill_(epoch)
        self._states = None

    def restore(self, states: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Lets the next iteration go on where another was, on any number of ranks and workers.

        Those that follow are whole, and of the epoch behind it, unless `set_epoch` says otherwise.

        Args:
            states: What `state_dict()` of StatefulDataLoader returned at one moment: a list with that of each rank, or
                that of the only one.

        Raises:
            ConfigError: These are not the states of all workers.
        """
        found = {(state["worker"], state["of"]): state for state in _states_in(states)}
        of = {count for _, count in found}
        if len(of) != 1 or len(found) != min(of):
            raise ConfigError(
                f"these are the states of workers {sorted(found)}, which are not all; give a list with the "
                "state_dict() of the loader of each rank"
            )
        self._states = [json.loads(found[each]["batches"]) for each in sorted(found)]
        stops = [state["stop"] for state in found.values() if state["stop"] is not None]
        self._stop = max(stops, default=None)
        self._epoch.fill_(self._stop or 0)
        self._resumed.fill_(0)

    def __iter__(self) -> "TorchIterator":
        worker = get_worker_info()
        workers, own = (worker.num_workers, worker.id) if worker else (1, 0)
        rank, ranks = self._shard
        shard = rank * workers + own, ranks * workers
        if states := self._taken_states(worker.seed - worker.id if worker else 0):
            return TorchIterator(self._ask, shard, 0, self._epochs and self._stop, states)
        epoch = int(self._epoch)
        return TorchIterator(self._ask, shard, epoch, self._epochs and epoch + self._epochs, None)

    def _taken_states(self, iteration: int) -> list[dict[str, Any]] | None:
        """Returns where to go on, once.

        Args:
            iteration: What tells a loader's iterations apart, of which each may have workers of its own, that know of
                no other but by what they share.
        """
        states, self._states = self._states, None
        if states and not self._resumed:
            self._resumed.fill_(iteration or 1)
        return states if int(self._resumed) == (iteration or 1) else None


class TorchIterator(Iterator[Any]):
    """One worker's batches, with the state that torchdata's StatefulDataLoader keeps.

    Args:
        ask: Asks for batches of a share.
        shard: Which worker, and of how many.
        epoch: The first epoch.
        stop: The epoch before which it ends; None: never.
        states: Of all workers, where it begins; None: with the epoch.
    """

    def __init__(
        self, ask: Ask, shard: tuple[int, int], epoch: int, stop: int | None, states: list[dict[str, Any]] | None
    ) -> None:
        self._ask, self._shard, self._stop = ask, shard, stop
        self._batches = ask(shard=shard, epochs=stop)
        if states is not None:
            self._batches.restore(states)
        elif epoch:
            self._batches.restore([{**self._batches.state(), "epoch": epoch}] * shard[1])

    def __next__(self) -> Any:
        return next(self._batches)

    def state_dict(self) -> dict[str, Any]:
        """Returns where this worker is."""
        index, count = self._shard
        state = json.dumps(self._batches.state())
        return {_MARK: 1, "batches": state, "worker": index, "of": count, "stop": self._stop}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where this worker was.

        Raises:
            ConfigError: The state is of another worker, or there were more or fewer of them.
            StaleError: It is of other data.
        """
        if state.get(_MARK) != 1:
            raise ConfigError(f"{str(state)[:200]} is no state of these batches; give what state_dict() returned")
        index, count = state["worker"], state["of"]
        batches = json.loads(state["batches"])
        if (index, count) != self._shard:
            raise ConfigError(
                f"the state is of worker {index} of {count}, this is worker {self._shard[0]} of {self._shard[1]}, over "
                "all ranks; give `restore` of the dataset the states of all ranks, before the loader is made"
            )
        self._batches.close()
        self._stop = state["stop"]
        self._batches = self._ask(shard=self._shard, epochs=self._stop)
        self._batches.restore([batches] * count)  # each worker has its own state, so that the others' do not matter


def _states_in(values: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the states of workers, wherever a loader keeps them."""
    if isinstance(values, Mapping):
        if values.get(_MARK) == 1:
            yield values
            return
        if values.get("_steps_since_snapshot"):
            raise ConfigError("the loader's states are older than its batches; use snapshot_every_n_steps=1")
        values = list(values.values())
    if isinstance(values, list | tuple):
        for value in values:
            yield from _states_in(value)
