"""TFRecord datasets as Dagster assets: raw data in, verified shards out, and the fastest way to read them.

Everything is imported when it is first used: training code that reads needs no Dagster, a program that writes needs
neither Dagster nor TensorFlow, and Dagster's code server needs no TensorFlow.
"""

from importlib import import_module
from typing import Any

_LAZY = {
    "TFRecordDataset": "tfr_assets.components.dataset",
    "batches": "tfr_assets.reading.columnar",
    "read": "tfr_assets.reading.read",
    "write": "tfr_assets.writing.write",
}
__all__ = ["TFRecordDataset", "batches", "read", "write"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    # without functions: `dg` looks at all that is listed here, and would import TensorFlow to list components
    return sorted({*globals(), "TFRecordDataset"})
