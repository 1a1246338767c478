"""In which order the records of an epoch come: a function from a position in the epoch to the record there.

Since it is a function, nothing of the size of the dataset is kept, any place of any epoch is reached at once, and any
number of workers agree on it.

    False       as they were written
    10_000      each window of so many records is shuffled
    "blocks"    blocks of 256 KiB, but at least 64 records, come in random order; 16 of them are shuffled together
    "global"    any record at any position

Windows and blocks begin elsewhere in each epoch, so that no two records are kept apart for ever.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tfr_assets.errors import ConfigError
from tfr_assets.reading.access.permutation import key_of, permuted

Shuffle = bool | int | Literal["global", "blocks"]
_WINDOW = 10_000  # of shuffle=True, as for `read`
_BLOCK_BYTES, _BLOCK_RECORDS = 256 << 10, 64  # at least
_TOGETHER = 16  # blocks
_MOST = 2**62  # records of a window; see `permuted`


@dataclass(frozen=True)
class Order:
    """The order of all records, epoch by epoch.

    Attributes:
        size: Number of records.
        shuffle: `0` for none; the window's number of records; `"blocks"` or `"global"`.
        block: Records of a block, if there are blocks.
        seed: What chooses one of the many orders.
    """

    size: int
    shuffle: int | Literal["global", "blocks"]
    block: int
    seed: int

    def records(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """Returns which record comes at each position of an epoch: int64 of shape (n,).

        Args:
            epoch: Number of the epoch, from 0.
            positions: int64 of shape (n,), each at least 0 and below the size.
        """
        if not self.shuffle or not self.size:
            return positions
        key = key_of(self.seed, epoch)
        if self.shuffle == "global":
            return permuted(positions, self.size, 0, key)
        shift = key_of(key, "shift") % self.size
        if self.shuffle == "blocks":
            places = self._in_blocks(_within_windows(positions, self.size, self.block * _TOGETHER, key), key)
        else:
            places = _within_windows(positions, self.size, self.shuffle, key)
        return (places + shift) % self.size

    def _in_blocks(self, places: np.ndarray, key: int) -> np.ndarray:
        """Moves whole blocks; what is left behind the last whole one stays."""
        blocks = self.size // self.block
        which, within = np.divmod(places, self.block)
        moves = which < blocks
        which[moves] = permuted(which[moves], blocks, 0, key_of(key, "blocks"))
        return which * self.block + within


def order_of(size: int, payload_bytes: int, shuffle: Shuffle, seed: int) -> Order:
    """Returns the order that a user asks for.

    Args:
        size: Number of records.
        payload_bytes: Their size in all.
        shuffle: As the table above; True for a window of 10,000.
        seed: Any integer.

    Raises:
        ConfigError: There is no such order.
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool):
        raise ConfigError(f"seed={seed!r} must be an integer")
    shuffle, seed = checked_shuffle(shuffle), int(seed)
    block = max(1, min(size, max(_BLOCK_RECORDS, size * _BLOCK_BYTES // max(1, payload_bytes))))
    return Order(size, shuffle, block if shuffle == "blocks" else 0, seed)


def checked_shuffle(shuffle: object) -> int | Literal["global", "blocks"]:
    """Returns what `Order` takes for what a user asks for.

    Raises:
        ConfigError: There is no such order.
    """
    match shuffle:
        case str("global" | "blocks"):
            return shuffle
        case bool() | np.bool_():
            return _WINDOW if shuffle else 0
        case int() | np.integer() if 0 <= shuffle <= _MOST:
            return int(shuffle)
    raise ConfigError(
        f"shuffle={shuffle!r}: use 'global', 'blocks', a number of records to shuffle among, True for 10,000, or False"
    )


def _within_windows(positions: np.ndarray, size: int, window: int, key: int) -> np.ndarray:
    """Permutes within consecutive windows, of which the last may be smaller."""
    which, within = np.divmod(positions, window)
    sizes = np.minimum(window, size - which * window)
    return which * window + permuted(within, sizes, which, key_of(key, "windows"))
