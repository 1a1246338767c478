"""`tfr_assets.mix`: what a program calls that trains on several datasets at once."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tfr_assets.reading.access.mixture import Mixture
    from tfr_assets.reading.access.order import Shuffle


def mix(
    weights: Mapping[str | os.PathLike[str], float],
    *,
    split: str | None = None,
    columns: Sequence[str] | None = None,
    shuffle: "Shuffle" = "global",
    seed: int = 0,
    until: Literal["first", "all"] = "first",
    root: Path | None = None,
) -> "Mixture":
    """Mixes datasets of the same features, without TensorFlow: so many records of each, in random order.

    ```python
    import tfr_assets

    mixture = tfr_assets.mix({"names.tfrecord": 0.7, "out/names": 0.3}, columns=["id"], until="all")
    for batch in mixture.batches(256, epochs=2):
        batch["id"]
    ```

    Records come in rounds, the shortest with which all shares are what the weights say, to 0.1 % of each: seven and
    three here. Which record comes when is the same in every run, and its batches can be stopped and continued, on any
    number of workers.

    Args:
        weights: What of the records is of which dataset; names or paths, as `tfr_assets.open` takes them.
        split: Of all datasets.
        columns: Those to decode, in this order; None: all.
        shuffle: The order of each dataset, as for the `batches` of `tfr_assets.open`.
        seed: Another number is another order.
        until: What ends an epoch: `"first"`: a dataset has no more records for a whole round, so that none comes twice;
            `"all"`: each record of each has come, while those of the shorter ones come again, in another order.
        root: Folder of all datasets; None: `$TFR_DATA`, else the project's `data`.

    Raises:
        ConfigError: There is no such dataset, split or column, a weight is not positive, or a dataset is too small.
        SchemaError: They have other features.
        StaleError: Files must be written (again) first.
        DamagedFile: A file is missing.
    """
    from tfr_assets.errors import ConfigError
    from tfr_assets.reading.access.mixture import Mixture
    from tfr_assets.reading.locate.files import locate

    if not isinstance(weights, Mapping):
        raise ConfigError("give a dict from datasets to their weights, such as {'a': 0.7, 'b': 0.3}")
    if len(twice := Counter(map(str, weights))) < len(weights):
        raise ConfigError(f"{twice.most_common(1)[0][0]!r} is given twice, with several weights; give one, their sum")
    sources = {str(name): locate(name, None, root, split, sizes_must_fit=False).absolute() for name in weights}
    return Mixture(sources, list(weights.values()), shuffle, seed, until, columns)
