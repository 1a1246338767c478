"""Encoded images and recordings → tensors."""

from collections.abc import Callable, Sequence

from tfr_assets.reading.spec import Tensors
from tfr_assets.records.features import FeatureSpec


def decoder(features: FeatureSpec, names: Sequence[str]) -> Callable[[Tensors], Tensors]:
    """Returns a function that decodes some features of a batch and passes the others on."""
    return lambda tensors: tensors
