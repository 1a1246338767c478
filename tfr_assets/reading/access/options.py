"""How batches are asked for, whatever their order."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tfr_assets.errors import ConfigError
from tfr_assets.reading.locate.shares import check_shard

Even = Literal["pad", "drop"]
BatchInto = Literal["numpy", "arrow", "pandas", "records", "torch", "jax"]


@dataclass(frozen=True)
class BatchOptions:
    """What an iterator of batches is asked for. The fields are the arguments of `Dataset.batches`.

    Raises:
        ConfigError: One of them cannot be.
    """

    batch_size: int
    into: BatchInto = "numpy"
    epochs: int | None = 1
    shard: tuple[int, int] | None = (0, 1)
    even: Even | None = None
    on_error: Literal["raise", "skip"] = "raise"
    workers: int = 2
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        for option in ("batch_size", "workers") if self.epochs is None else ("batch_size", "workers", "epochs"):
            object.__setattr__(self, option, positive_integer(option, getattr(self, option)))
        shard: object = (0, 1) if self.shard is None else self.shard
        if isinstance(shard, tuple | list):
            shard = tuple(int(part) if isinstance(part, np.integer) else part for part in shard)
        check_shard(shard)
        object.__setattr__(self, "shard", shard)
        if self.even not in (None, "pad", "drop"):
            raise ConfigError(f"even={self.even!r}: use 'pad', 'drop' or None")
        check_on_error(self.on_error)

    @property
    def worker(self) -> tuple[int, int]:
        """The share: which worker, and of how many."""
        return self.shard or (0, 1)

    @property
    def skip(self) -> bool:
        """Whether damaged records are left out."""
        return self.on_error == "skip"


def positive_integer(option: str, value: object) -> int:
    """Returns an option's value.

    Raises:
        ConfigError: It is no integer above 0.
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{option}={value!r} must be a positive integer")
    return int(value)


def check_on_error(on_error: object) -> None:
    """Refuses what is no choice.

    Raises:
        ConfigError: It is none.
    """
    if on_error not in ("raise", "skip"):
        raise ConfigError(f"on_error={on_error!r}: use 'raise' or 'skip'")
