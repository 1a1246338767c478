"""TFRecord datasets as Dagster assets: raw data in, verified shards out, and the fastest way to read them.

```python
import tfr_assets

tfr_assets.write({"id": [1, 2, 3]}, "ids.tfrecord")
for batch in tfr_assets.read("ids.tfrecord"):  # a tf.data.Dataset
    batch["id"]
for batch in tfr_assets.batches("ids.tfrecord"):  # NumPy arrays, without TensorFlow
    batch["id"]
tfr_assets.open("ids.tfrecord")[2]  # any record by number
```

What is not listed in `__all__` is private, but for what `open` and `mix` return: `Dataset`, `Mixture` and
`ResumableBatches`. Importing this imports next to nothing: training code that reads needs no Dagster, a program that
writes needs neither Dagster nor TensorFlow, and Dagster's code server needs no TensorFlow.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from tfr_assets.errors import (
    ConfigError,
    DamagedFile,
    OutOfMemory,
    OutOfRange,
    SchemaError,
    SourceChanged,
    SourceError,
    StaleError,
    TfrError,
    WriteError,
)
from tfr_assets.reading.batches import batches
from tfr_assets.reading.mix import mix
from tfr_assets.reading.open import open
from tfr_assets.reading.read import read
from tfr_assets.writing.foreign.adopt import adopt
from tfr_assets.writing.stored import inspect, merge, verify
from tfr_assets.writing.write import Written, write

if TYPE_CHECKING:
    from tfr_assets.components.config.component import TFRecordDataset
    from tfr_assets.reading.access.dataset import Dataset as Dataset
    from tfr_assets.reading.access.epochs import ResumableBatches as ResumableBatches
    from tfr_assets.reading.access.mixture import Mixture as Mixture
    from tfr_assets.records.arrow.arrays import Ragged, Strings
    from tfr_assets.records.schema.feature_options import FeatureOptions

__all__ = [
    "ConfigError",
    "DamagedFile",
    "FeatureOptions",
    "OutOfMemory",
    "OutOfRange",
    "Ragged",
    "SchemaError",
    "SourceChanged",
    "SourceError",
    "StaleError",
    "Strings",
    "TFRecordDataset",
    "TfrError",
    "WriteError",
    "Written",
    "__version__",
    "adopt",
    "batches",
    "inspect",
    "merge",
    "mix",
    "open",
    "read",
    "verify",
    "write",
]
_LAZY = {  # classes that bring Dagster, NumPy or Arrow with them
    "Dataset": "tfr_assets.reading.access.dataset",
    "FeatureOptions": "tfr_assets.records.schema.feature_options",
    "Mixture": "tfr_assets.reading.access.mixture",
    "Ragged": "tfr_assets.records.arrow.arrays",
    "ResumableBatches": "tfr_assets.reading.access.epochs",
    "Strings": "tfr_assets.records.arrow.arrays",
    "TFRecordDataset": "tfr_assets.components.config.component",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name == "__version__":
        return metadata.version("tfr-assets")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists what a program calls. Dagster imports all that is listed, to find components."""
    return sorted(__all__)
