"""Several datasets as one, each with its share of the records.

A mixture is made of rounds. Each round has so many records of each dataset as its weight says, in random order; so the
shares are exact after every round, and which record comes at a position follows from the position alone, as everything
needs that resumes.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from numbers import Real
from typing import Any, Literal

import numpy as np

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.reading.access.dataset import Dataset, files_order, fingerprint_of
from tfr_assets.reading.access.epochs import ResumableBatches
from tfr_assets.reading.access.options import BatchInto, BatchOptions, Even
from tfr_assets.reading.access.order import Order, Shuffle
from tfr_assets.reading.access.permutation import key_of, permuted
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.locate.slices import gather_again
from tfr_assets.records.schema.joint import joint_spec

Until = Literal["first", "all"]
_LONGEST_ROUND = 10_000
_MOST_WEIGHT = 1e300  # so that their sum is a number, too
_PRECISION = 1e-3  # of a share, relative to it


@dataclass(frozen=True)
class MixedOrder(Order):
    """The order of a mixture.

    Attributes:
        parts: The order of each dataset.
        quotas: Records of each in a round.
    """

    parts: tuple[Order, ...] = ()
    quotas: tuple[int, ...] = ()

    def records(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        """See `Order.records`; records count through all datasets, one after another."""
        round_, within = np.divmod(positions, sum(self.quotas))
        within = permuted(within, sum(self.quotas), round_, key_of(self.seed, epoch, "mixture"))
        starts = np.cumsum([0, *self.quotas])
        which = np.searchsorted(starts, within, "right") - 1
        found = np.empty_like(positions)
        firsts = list(accumulate((part.size for part in self.parts), initial=0))
        for number, (part, quota) in enumerate(zip(self.parts, self.quotas, strict=True)):
            mine = which == number
            passes, places = np.divmod(round_[mine] * quota + within[mine] - starts[number], max(1, part.size))
            own = replace(part, seed=key_of(self.seed, number))
            most = -(-self.size // sum(self.quotas) * quota // max(1, part.size))  # passes in an epoch
            records = np.empty_like(places)
            for pass_ in np.unique(passes).tolist():
                now = passes == pass_
                records[now] = own.records(epoch * most + pass_, places[now])
            found[mine] = firsts[number] + records
        return found


class Mixture:
    """Several datasets as one. Get it from `tfr_assets.mix`. It can be pickled, as a dataset can.

    Args:
        sources: Files by what users call them.
        weights: Of each.
        shuffle: The order of each, as for `Dataset.batches`.
        seed: As for `Dataset.batches`.
        until: What ends an epoch; see `tfr_assets.mix`.
        columns: The columns to decode; None: all.

    Attributes:
        quotas: Records of each dataset in a round.
    """

    def __init__(
        self,
        sources: Mapping[str, RecordFiles],
        weights: Sequence[float],
        shuffle: Shuffle,
        seed: int,
        until: Until,
        columns: Sequence[str] | None,
    ) -> None:
        self._arguments = dict(sources), [*weights], shuffle, seed, until, columns
        if until not in ("first", "all"):
            raise ConfigError(f"until={until!r}: use 'first' or 'all'")
        files = list(sources.values())
        if empty := [name for name, each in sources.items() if not each.records]:
            raise ConfigError(f"{empty[0]!r} has no records to mix; leave it out")
        quotas = quotas_of(weights)
        rounds = _rounds([each.records for each in files], quotas, until)
        if not rounds:
            raise ConfigError(
                f"a round of {sum(quotas)} records takes {dict(zip(sources, quotas, strict=True))}, more than there "
                "are; use until='all', or rounder weights"
            )
        parts = tuple(files_order(each, shuffle, seed) for each in files)
        self.quotas = dict(zip(sources, quotas, strict=True))
        self._order = MixedOrder(rounds * sum(quotas), parts[0].shuffle, 0, seed, parts, quotas)
        joint = RecordFiles(
            tuple(path for each in files for path in each.paths),
            tuple(manifest for each in files for manifest in each.manifests),
            joint_spec({name: files.features for name, files in sources.items()}, "mixed"),
            max(each.max_record_bytes for each in files),
            {path: known for each in files for path, known in each.scanned.items()},
        )
        self._all = Dataset(joint, columns)
        made_of = [[fingerprint_of(each), quota] for each, quota in zip(files, quotas, strict=True)]
        self.fingerprint = hashlib.sha256(json.dumps([made_of, until]).encode()).hexdigest()[:16]

    def __reduce__(self) -> tuple[Any, ...]:
        sources, *others = self._arguments
        files = {name: each if each.scanned else (each.paths, each.max_record_bytes) for name, each in sources.items()}
        return _reopened, (files, *others, self.fingerprint)

    def __len__(self) -> int:
        """Records of an epoch."""
        return self._order.size

    def batches(
        self,
        batch_size: int = 4096,
        *,
        into: BatchInto = "numpy",
        epochs: int | None = 1,
        shard: tuple[int, int] | None = None,
        even: Even | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        workers: int = 2,
        drop_remainder: bool = False,
    ) -> ResumableBatches:
        """Returns an iterator of batches that can be stopped and continued; arguments and errors as for a dataset's.

        Args:
            batch_size: Records a batch.
            into: What each batch is.
            epochs: How many; None: without end.
            shard: This worker's share.
            even: Whether all workers have as many batches.
            on_error: What damage does.
            workers: Threads that read and decode ahead.
            drop_remainder: Whether to leave out a last batch that is not full.
        """
        options = BatchOptions(batch_size, into, epochs, shard, even, on_error, workers, drop_remainder)
        return self._all.batches_in_order(self._order, self.fingerprint, options)


def _reopened(
    sources: Mapping[str, RecordFiles | tuple[tuple[str, ...], int]], weights: Sequence[float], shuffle: Shuffle,
    seed: int, until: Until, columns: Sequence[str] | None, fingerprint: str,
) -> Mixture:  # fmt: skip
    """Opens the files of a mixture again.

    Raises:
        StaleError: They are not those of the fingerprint.
        DamagedFile: A file is missing.
    """
    found = {
        name: each if isinstance(each, RecordFiles) else gather_again(each[0]).with_limit(each[1])
        for name, each in sources.items()
    }
    mixture = Mixture(found, weights, shuffle, seed, until, columns)
    if mixture.fingerprint != fingerprint:
        raise StaleError(
            f"{', '.join(sources)} are not the datasets of the pickled mixture (fingerprint {fingerprint}, now "
            f"{mixture.fingerprint}); mix them again"
        )
    return mixture


def quotas_of(weights: Sequence[float]) -> tuple[int, ...]:
    """Returns the fewest records of each in a round with which all shares are what the weights say, to 0.1 % of each.

    Raises:
        ConfigError: A weight is not positive, or one is too small beside the others.
    """
    if not weights or not all(map(_is_weight, weights)):
        raise ConfigError(f"weights {list(weights)} must be positive numbers, one for each dataset")
    shares = np.array(weights, float) / sum(map(float, weights))
    for size in range(len(weights), _LONGEST_ROUND + 1):
        quotas = np.rint(shares * size)
        if quotas.sum() == size and (abs(quotas / size - shares) <= _PRECISION * shares).all():
            return tuple(int(quota) for quota in quotas)
    raise ConfigError(
        f"weights {list(weights)} do not fit into rounds of {_LONGEST_ROUND} records; give rounder ones, the smallest "
        f"at least 1/{_LONGEST_ROUND} of all"
    )


def _is_weight(weight: object) -> bool:
    try:
        return isinstance(weight, Real) and 0 < float(weight) < _MOST_WEIGHT
    except OverflowError:
        return False


def _rounds(sizes: Sequence[int], quotas: Sequence[int], until: Until) -> int:
    if until == "first":
        return min(size // quota for size, quota in zip(sizes, quotas, strict=True))
    return max(-(-size // quota) for size, quota in zip(sizes, quotas, strict=True))
