"""Feature spec → how TensorFlow parses a record, and which tensors come out.

For a batch of B records:

| feature                                       | where a record lacks it | tensor                                |
|-----------------------------------------------|-------------------------|---------------------------------------|
| scalar, or fixed shape `(n, …)`               | an error                | dense `(B,)`, `(B, n, …)`             |
| the same, optional, with `fill`               | `fill` everywhere       | dense `(B,)`, `(B, n, …)`             |
| the same, optional float32                    | NaN everywhere          | dense `(B,)`, `(B, n, …)`             |
| the same, optional bytes                      | `b""` everywhere        | dense `(B,)`, `(B, n, …)`             |
| the same, optional int64                      | no value in its row     | ragged `(B, None)`, `(B, None, n, …)` |
| varying length `(None,)`, `(None, k, …)`      | no value in its row     | ragged `(B, None)`, `(B, None, k, …)` |

An absent integer is no 0: its row has 0 values or 1, unless `fill` says what to put there. A list of varying length
that is absent is an empty list, whatever `fill` says. All ragged tensors have int64 row splits and dense inner sizes.

A tf.Example holds int64, float32 and bytes only. Where the column's type was narrower, its tensors are, too:

| column                               | stored  | tensor                                                 |
|--------------------------------------|---------|--------------------------------------------------------|
| bool                                 | int64   | bool                                                   |
| int8, int16, int32, uint8 … uint32   | int64   | the same type; int64 where `fill` lies outside of it   |
| int64, uint64                        | int64   | int64                                                  |
| timestamps, dates, times, durations  | int64   | int64, a count of the column's unit                    |
| float16, float32, float64            | float32 | float32: widening it would bring no digit back         |
| string, binary, decimal              | bytes   | string                                                 |
"""

import math
import re

import numpy as np
import tensorflow as tf

from tfr_assets.records.features import Feature, FeatureSpec, Kind

_STORED = {Kind.INT64: tf.int64, Kind.FLOAT32: tf.float32, Kind.BYTES: tf.string}
_ABSENT = {Kind.FLOAT32: math.nan, Kind.BYTES: ""}
_NARROW = {t.name: t for t in (tf.bool, tf.int8, tf.int16, tf.int32, tf.uint8, tf.uint16, tf.uint32)}
# the values' type in Arrow's words: `int8`, `list<item: int8>`, `dictionary<values=int8, …`, `…[value_type=int8, …`
_VALUES = re.compile(rf"(?:^|: |<values=|\[value_type=)({'|'.join(_NARROW)})(?= not null|[>,]|$)")

Tensors = dict[str, tf.Tensor | tf.RaggedTensor]


def parse_spec(features: FeatureSpec) -> dict[str, tf.io.FixedLenFeature | tf.io.RaggedFeature]:
    """Returns what `tf.io.parse_example` takes. Its result has the stored types and flat lists: see `typed`."""
    return {feature.name: _parsed_as(feature) for feature in features.features}


def typed(features: FeatureSpec, parsed: Tensors) -> Tensors:
    """Gives parsed features the types of their columns and the inner sizes of their lists.

    Args:
        features: The spec.
        parsed: A batch, as `tf.io.parse_example` returns it for `parse_spec(features)`.

    Returns:
        The tensors of the module's tables. What needs no change is passed on as it is.
    """
    tensors = dict(parsed)
    for feature in features.features:
        tensor = tensors[feature.name]
        if _is_ragged(feature) and (sizes := _inner_sizes(feature)):
            tensor = _grouped(tensor, sizes)
        if (dtype := _dtype(feature)) != tensor.dtype:
            tensor = tf.cast(tensor, dtype)
        tensors[feature.name] = tensor
    return tensors


def element_spec(features: FeatureSpec, batch_size: int | None = None) -> dict[str, tf.TypeSpec]:
    """Returns the types and shapes of a batch, without a file.

    Args:
        features: The spec.
        batch_size: Records of every batch; None where the last batch may have fewer.
    """
    return {feature.name: _tensor_spec(feature, batch_size) for feature in features.features}


def _parsed_as(feature: Feature) -> tf.io.FixedLenFeature | tf.io.RaggedFeature:
    dtype = _STORED[feature.kind]
    if _is_ragged(feature):
        return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
    if not feature.optional:
        return tf.io.FixedLenFeature(feature.shape, dtype)
    value = _ABSENT.get(feature.kind) if feature.fill is None else feature.fill
    return tf.io.FixedLenFeature(feature.shape, dtype, tf.fill(feature.shape, tf.constant(value, dtype)).numpy())


def _tensor_spec(feature: Feature, batch_size: int | None) -> tf.TypeSpec:
    if _is_ragged(feature):
        shape = (batch_size, None, *_inner_sizes(feature))
        return tf.RaggedTensorSpec(shape, _dtype(feature), ragged_rank=1, row_splits_dtype=tf.int64)
    return tf.TensorSpec((batch_size, *feature.shape), _dtype(feature))


def _is_ragged(feature: Feature) -> bool:
    return None in feature.shape or (feature.optional and feature.kind is Kind.INT64 and feature.fill is None)


def _inner_sizes(feature: Feature) -> tuple[int | None, ...]:
    """Sizes behind the ragged dimension; for an optional array that dimension counts 0 or 1 arrays."""
    return feature.shape[1:] if None in feature.shape else feature.shape


def _grouped(flat: tf.RaggedTensor, sizes: tuple[int | None, ...]) -> tf.RaggedTensor:
    """Groups the values of flat rows (B, None) into arrays: (B, None, *sizes)."""
    arrays = tf.reshape(flat.values, (-1, *sizes))
    splits = flat.row_splits // math.prod(size or 1 for size in sizes)
    # not validated: the encoder writes whole arrays only, and the check `features` finds what is none
    return tf.RaggedTensor.from_row_splits(arrays, splits, validate=False)


def _dtype(feature: Feature) -> tf.DType:
    if feature.kind is Kind.INT64 and (found := _VALUES.findall(feature.arrow_type)):
        narrow = _NARROW[found[-1]]
        if feature.fill is None or np.int64(feature.fill).astype(narrow.as_numpy_dtype) == feature.fill:
            return narrow
    return _STORED[feature.kind]
