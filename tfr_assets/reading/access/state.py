"""Where an iterator is, as a few numbers that JSON holds: enough to go on from there, on any number of workers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.reading.access.order import Order

FORMAT = 1
_MOST_EPOCHS = 1000  # that workers are apart


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
        later: What has been taken of the epochs that follow, one after another, by workers that were ahead.
        stands_for_all: Whether all workers that have taken as many batches are at the same place.
    """

    fingerprint: str
    shuffle: int | str
    block: int
    seed: int
    epoch: int
    taken: Sequence[Any]
    batch_size: int
    later: Sequence[Any] = ()
    stands_for_all: bool = True

    def to_json(self) -> dict[str, Any]:
        """Returns it as values that `json.dumps` takes."""
        values = asdict(self)
        if not self.later:
            del values["later"]
        if self.stands_for_all:
            del values["stands_for_all"]
        return {"format": FORMAT, **values}

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
        return replace(state, taken=_lists(state.taken), later=[_lists(taken) for taken in state.later])

    def _is_valid(self) -> bool:
        return (
            isinstance(self.fingerprint, str)
            and (isinstance(self.shuffle, str) or _is_count(self.shuffle))
            and all(map(_is_count, (self.block, self.epoch, self.batch_size)))
            and isinstance(self.seed, int)
            and isinstance(self.stands_for_all, bool)
            and isinstance(self.later, list | tuple)
            and all(map(_is_taken, (self.taken, *self.later)))
            and len(self.taken) > 0
            and _is_count(self.taken[-1][1])
        )

    def before(self, epoch: int) -> list[Any]:
        """Returns what had been taken of this epoch, or of a later one, when the worker began."""
        if epoch == self.epoch:
            return [*self.taken[:-1]]
        ahead = epoch - self.epoch - 1
        return [*self.later[ahead]] if ahead < len(self.later) else []

    def taken_of(self, epoch: int, size: int) -> int:
        """Returns how many records of an epoch the worker has taken since then; `size` stands for its whole share."""
        return self.taken[-1][1] if epoch == self.epoch else size if epoch < self.epoch else 0

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


def joint_state(states: Sequence[State], size: int) -> State:
    """Returns the state of all workers together.

    Args:
        states: One, which stands for all workers, each of which has taken as many batches; or those of all of them, in
            the order of their numbers.
        size: Number of records.

    Raises:
        ConfigError: They do not belong together.
    """
    first = min(states, key=lambda state: state.epoch)
    workers = len(states) if len(states) > 1 else first.taken[-1][0]
    if len(states) == 1:
        if workers > 1 and not first.stands_for_all:
            raise ConfigError(
                f"the state is of one of {workers} workers, whose shares have different numbers of batches, so that "
                "the others may be in another epoch; give a list of the states of all, in their order. With "
                "even='drop' or 'pad', one is enough"
            )
        taken, later = first.taken, first.later
    else:
        if len({(state.fingerprint, state.shuffle, state.block, state.seed, state.batch_size) for state in states}) > 1:
            raise ConfigError("the states are not of the same batches of the same data; give those of one moment")
        for state in states:
            if (count := state.taken[-1][0]) != workers:
                raise ConfigError(f"there are {workers} states, but {count} workers; give all, in their order, or one")
        if (apart := max(state.epoch for state in states) - first.epoch) > _MOST_EPOCHS:
            raise ConfigError(
                f"the states are {apart} epochs apart, at most {_MOST_EPOCHS} are joined; read with even='drop' or "
                "'pad', so that workers stay together"
            )
        stop = max(state.epoch + len(state.later) for state in states) + 1
        taken, *later = [_joint(states, epoch, size) for epoch in range(first.epoch, stop)]
    return replace(first, taken=_compact(taken), later=[*map(_compact, later)])


def _joint(states: Sequence[State], epoch: int, size: int) -> list[Any]:
    """Returns what all workers have taken of an epoch."""
    before, *others = [state.before(epoch) for state in states if state.epoch <= epoch]
    if any(other != before for other in others):
        raise ConfigError("the workers of the states did not begin at the same place; give those of one moment")
    return [*before, [len(states), [state.taken_of(epoch, size) for state in states]]]


def _compact(taken: Sequence[Any]) -> list[Any]:
    """Returns the same without what says nothing."""
    short = [[workers, each if isinstance(each, int) or len({*each}) > 1 else each[0]] for workers, each in taken]
    return [entry for entry in short if entry[1]]


def _lists(taken: Sequence[Any]) -> list[Any]:
    return [[workers, each if isinstance(each, int) else [*each]] for workers, each in taken]


def _is_taken(taken: object) -> bool:
    return isinstance(taken, list | tuple) and all(map(_is_entry, taken))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_entry(entry: object) -> bool:
    match entry:
        case [workers, [*each]]:
            return _is_count(workers) and workers == len(each) >= 1 and all(map(_is_count, each))
        case [workers, records]:
            return _is_count(workers) and workers != 0 and _is_count(records)
    return False
