"""Where an iterator is, as a few numbers that JSON holds: enough to go on from there, on any number of workers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.reading.access.order import Order

FORMAT = 1


@dataclass(frozen=True)
class State:
    """A place in an epoch.

    Attributes:
        fingerprint: Of the data.
        shuffle: As that of `Order`.
        block: As that of `Order`.
        seed: As that of `Order`.
        epoch: Number of the epoch, from 0.
        taken: What has been taken of it; see `left`. The last entry is of those workers whose state this is.
        batch_size: Records a batch, for people: a continued epoch may have other batches.
    """

    fingerprint: str
    shuffle: int | str
    block: int
    seed: int
    epoch: int
    taken: Sequence[Any]
    batch_size: int

    def to_json(self) -> dict[str, Any]:
        """Returns it as values that `json.dumps` takes."""
        return {"format": FORMAT, **asdict(self), "taken": [list(entry) for entry in self.taken]}

    @staticmethod
    def from_json(values: object) -> "State":
        """Returns the state of what `to_json` gave.

        Raises:
            ConfigError: It is something else, or of a later version.
        """
        if not isinstance(values, Mapping) or "format" not in values:
            raise ConfigError(f"{str(values)[:200]!r} is no state; give what an iterator's `state()` returned")
        if values["format"] != FORMAT:
            raise ConfigError(
                f"the state is of format {values['format']!r}, this version reads format {FORMAT}; continue with the "
                "version of tfr-assets that made it, or start the epoch anew"
            )
        try:
            state = State(**{name: value for name, value in values.items() if name != "format"})
        except TypeError as error:
            raise ConfigError(f"the state is damaged: {error}; start the epoch anew") from error
        if not state._is_valid():
            raise ConfigError(f"the state is damaged: {str(values)[:500]}; start the epoch anew")
        return state

    def _is_valid(self) -> bool:
        counts = (self.block, self.epoch, self.batch_size)
        return (
            all(isinstance(count, int) and count >= 0 for count in counts)
            and isinstance(self.seed, int)
            and isinstance(self.taken, list | tuple)
            and len(self.taken) > 0
            and all(map(_is_entry, self.taken))
        )

    def check(self, fingerprint: str, order: Order) -> None:
        """Makes sure that the state belongs to some data and its order.

        Args:
            fingerprint: Of the data.
            order: The order that the iterator has; its seed may be another.

        Raises:
            StaleError: It is of other data.
            ConfigError: It is of another order.
        """
        if self.fingerprint != fingerprint:
            raise StaleError(
                f"the state is of other data (fingerprint {self.fingerprint}, this is {fingerprint}): another dataset, "
                "split, or version of it. Open what the state was made of, or start the epoch anew"
            )
        if (self.shuffle, self.block) != (order.shuffle, order.block):
            raise ConfigError(
                f"the state is of shuffle={self.shuffle or False!r}, this iterator has "
                f"shuffle={order.shuffle or False!r}; give the same"
            )


def joint_state(states: Sequence[State]) -> State:
    """Returns the state of all workers together.

    Args:
        states: One, which stands for all workers, each of which has taken as many batches; or those of all of them, in
            the order of their numbers.

    Raises:
        ConfigError: They do not belong together.
    """
    first = states[0]
    if len(states) == 1:
        return first
    if len({replace(state, taken=state.taken[:-1]) for state in map(_frozen, states)}) > 1:
        raise ConfigError("the states are not of the same epoch of the same data; give those of one moment")
    workers = [state.taken[-1][0] for state in states]
    if workers != [len(states)] * len(states):
        raise ConfigError(f"there are {len(states)} states, but {workers[0]} workers; give all, in their order, or one")
    each = [state.taken[-1][1] for state in states]
    return replace(first, taken=[*first.taken[:-1], [len(states), each]])


def _frozen(state: State) -> State:
    """Returns the same state, which can be compared and hashed."""
    entries = tuple((workers, each if isinstance(each, int) else tuple(each)) for workers, each in state.taken)
    return replace(state, taken=entries)


def _is_entry(entry: object) -> bool:
    match entry:
        case [int(workers), int(records)]:
            return workers >= 1 and records >= 0
        case [int(workers), [*each]]:
            return workers == len(each) >= 1 and all(isinstance(count, int) and count >= 0 for count in each)
    return False
