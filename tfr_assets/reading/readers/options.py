"""What a reader is asked for, beyond the files."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import tensorflow as tf

from tfr_assets.errors import ConfigError
from tfr_assets.reading.locate.shares import check_shard

OnError = Literal["unchecked", "raise", "skip"]
_ON_ERROR: tuple[OnError, ...] = ("unchecked", "raise", "skip")


@dataclass(frozen=True)
class ReadOptions:
    """Which batches to give, and how to go about it.

    Attributes:
        batch_size: Records per batch; the last one has what is left.
        drop_remainder: Whether to leave out a last batch that is not full.
        shuffle: Records to draw from at random; 0 keeps the order of the rows. Files come in another order each epoch.
        seed: Makes the shuffled order the same in every run; it still differs from epoch to epoch.
        shard: Which part of the records, and of how many: `(0, 4)` is the first of four.
        repeat: Epochs, for readers that count them; None: without end.
        decode: Features of encoded images and recordings to decode, each with its shape if that is known.
        on_error: `unchecked` leaves damage to TensorFlow, which may say less, or nothing. `raise` verifies every file
            before its records are used, and names file, record and byte. `skip` leaves damaged records out and warns.
        cycle_length: Files read in turn, where a reader does so.
        block_length: Records from a file before it is the next one's turn.
        parallel_calls: Files read, or elements parsed, at once; None leaves it to tf.data.
        deterministic: Whether parallel work keeps its order.
        workers: Processes of `file_queue` and `data_service`.
        open_files: Files that `bounded` may have open at once.
        memory: Bytes that the batches under way in `bounded` may take, about.
        cache_folder: Where `cache_file` puts its file; None: the system's folder of temporary files.

    Raises:
        ConfigError: A value is invalid.
    """

    batch_size: int = 1024
    drop_remainder: bool = False
    shuffle: int = 0
    seed: int | None = None
    shard: tuple[int, int] = (0, 1)
    repeat: int | None = 1
    decode: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    on_error: OnError = "unchecked"
    cycle_length: int = 4
    block_length: int = 1
    parallel_calls: int | None = None
    deterministic: bool = True
    workers: int = 2
    open_files: int = 16
    memory: int = 256 << 20
    cache_folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name, example in _POSITIVE.items():
            if not _is_integer(value := getattr(self, name)) or value < 1:
                raise ConfigError(f"{name}={value!r} must be a positive integer, such as {example}")
        if not _is_integer(self.shuffle) or self.shuffle < 0:
            raise ConfigError(f"shuffle={self.shuffle!r} must be a number of records to draw from, such as 10000")
        if self.seed is not None and not _is_integer(self.seed):
            raise ConfigError(f"seed={self.seed!r} must be an integer")
        check_shard(self.shard)
        if self.on_error not in _ON_ERROR:
            raise ConfigError(f"on_error={self.on_error!r}: use 'raise', 'skip' or 'unchecked'")

    @property
    def calls(self) -> int:
        """What tf.data takes for `parallel_calls`."""
        return tf.data.AUTOTUNE if self.parallel_calls is None else self.parallel_calls


_POSITIVE = {"batch_size": 1024, "cycle_length": 4, "block_length": 1, "workers": 2, "open_files": 16, "memory": 2**28}


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
