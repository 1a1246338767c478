"""How batches are asked for, whatever their order."""

from dataclasses import dataclass
from typing import Literal

from tfr_assets.errors import ConfigError
from tfr_assets.reading.locate.shares import check_shard

Even = Literal["pad", "drop"]
BatchInto = Literal["numpy", "arrow", "pandas", "records"]


@dataclass(frozen=True)
class BatchOptions:
    """What an iterator of batches is asked for. The fields are the arguments of `Dataset.batches`.

    Raises:
        ConfigError: One of them cannot be.
    """

    batch_size: int
    into: BatchInto = "numpy"
    epochs: int | None = 1
    shard: tuple[int, int] = (0, 1)
    even: Even | None = None
    on_error: Literal["raise", "skip"] = "raise"
    workers: int = 2
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        counts = {"batch_size": self.batch_size, "workers": self.workers}
        if self.epochs is not None:
            counts["epochs"] = self.epochs
        for option, value in counts.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{option}={value!r} must be a positive integer")
        check_shard(self.shard)
        if self.even not in (None, "pad", "drop"):
            raise ConfigError(f"even={self.even!r}: use 'pad', 'drop' or None")
        check_on_error(self.on_error)

    @property
    def skip(self) -> bool:
        """Whether damaged records are left out."""
        return self.on_error == "skip"


def check_on_error(on_error: object) -> None:
    """Refuses what is no choice.

    Raises:
        ConfigError: It is none.
    """
    if on_error not in ("raise", "skip"):
        raise ConfigError(f"on_error={on_error!r}: use 'raise' or 'skip'")
