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
| ragged: several features, but one tensor      | no value in its row     | ragged `(B, None, None)`, and deeper  |
| feature list, one value per step                | no step in its row      | ragged `(B, None)`                    |
| feature list, `n` values per step               | no step in its row      | ragged `(B, None, n)`                 |
| feature list, a varying number per step         | no step in its row      | ragged `(B, None, None)`              |
| serialized, fixed shape `(n, …)`              | as one not serialized   | dense `(B, n, …)`                     |
| serialized, varying sizes `(None, …)`         | no value in its row     | ragged `(B, None, …)`                 |
| serialized, a varying number of sizes         | `b""`                   | its bytes, dense `(B,)`               |

A packed tensor of varying shape is two lists of varying length, its values and `NAME/shape`; where all tensors have
equally many sizes, the latter is of a fixed shape.

An absent integer is no 0: its row has 0 values or 1, unless `fill` says what to put there. A list of varying length
that is absent is an empty list, whatever `fill` says. All ragged tensors have int64 row splits and dense inner sizes.

A tf.Example holds int64, float32 and bytes only. Where the column's type was narrower, its tensors are, too; those of
serialized tensors have exactly the column's type, float64 and uint64 among them:

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
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from tfr_assets.reading.tensors.serialized import parse_tensors, tensors_spec
from tfr_assets.records.schema.features import FLAT_VALUES, SERIALIZED, Feature, FeatureSpec, Kind

_STORED = {Kind.INT64: tf.int64, Kind.FLOAT32: tf.float32, Kind.BYTES: tf.string}
_ABSENT = {Kind.FLOAT32: math.nan, Kind.BYTES: ""}

Tensors = dict[str, tf.Tensor | tf.RaggedTensor]
Parsed: TypeAlias = tf.io.FixedLenFeature | tf.io.RaggedFeature


simulated_decoding: ContextVar[float] = ContextVar("simulated_decoding", default=0.0)
"""Seconds that each record takes longer in parsers made meanwhile: how measurements stand in for costly decoding."""


def add_delay(serialized: tf.Tensor, seconds: float) -> tf.Tensor:
    """Returns records of shape (B,) as they are, after `seconds` for each."""

    def wait(records: np.ndarray) -> None:
        time.sleep(seconds * int(records))

    with tf.control_dependencies([tf.numpy_function(wait, [tf.shape(serialized)[0]], [])]):
        return tf.identity(serialized)


def parser(features: FeatureSpec) -> Callable[[tf.Tensor], Tensors]:
    """Returns a function from a batch of serialized records, a string tensor of shape (B,), to the tables' tensors."""
    spec, lists, delay = parse_spec(features), list_spec(features), simulated_decoding.get()

    @tf.autograph.experimental.do_not_convert  # it has no control flow on tensors, and need not be rewritten
    def parse(serialized: tf.Tensor) -> Tensors:
        if delay:
            serialized = add_delay(serialized, delay)
        if not lists:
            return cast_tensors(features, tf.io.parse_example(serialized, spec))
        context, steps, _ = tf.io.parse_sequence_example(serialized, spec, lists)
        return cast_tensors(features, {**context, **steps})

    return parse


def parse_spec(features: FeatureSpec) -> dict[str, Parsed]:
    """Returns what `tf.io.parse_example` takes, or `tf.io.parse_sequence_example` for the context.

    The result has the stored types, flat lists and serialized tensors: see `cast_tensors`.
    """
    return {tensor.base_name: _parsed_as(tensor, features) for tensor in _tensors(features) if not tensor.sequence}


def list_spec(features: FeatureSpec) -> dict[str, tf.io.RaggedFeature]:
    """Returns what `tf.io.parse_sequence_example` takes for the feature lists; none, if records are tf.Examples."""
    return {
        feature.name: tf.io.RaggedFeature(_STORED[feature.kind], row_splits_dtype=tf.int64)
        for feature in features.features
        if feature.sequence
    }


def cast_tensors(features: FeatureSpec, parsed: Tensors) -> Tensors:
    """Gives parsed features the types of their columns and the inner sizes of their lists.

    Args:
        features: The spec.
        parsed: A batch, as it is parsed by `parse_spec(features)` and `list_spec(features)`.

    Returns:
        The tensors of the module's tables, in the order of the features. What needs no change is passed on as it is.
    """
    return {tensor.base_name: _cast_tensor(tensor, parsed[tensor.base_name]) for tensor in _tensors(features)}


def element_spec(features: FeatureSpec, batch_size: int | None = None) -> dict[str, tf.TypeSpec]:
    """Returns the types and shapes of a batch, without a file.

    Args:
        features: The spec.
        batch_size: Records of every batch; None where the last batch may have fewer.
    """
    return {tensor.base_name: _tensor_spec(tensor, features, batch_size) for tensor in _tensors(features)}


def _tensors(features: FeatureSpec) -> list[Feature]:
    """Returns the features that become tensors: lengths of inner lists become part of their values' tensor."""
    return [feature for feature in features.features if not feature.is_row_lengths]


def _parsed_as(feature: Feature, features: FeatureSpec) -> Parsed:
    dtype = _STORED[feature.kind]
    if feature.part == FLAT_VALUES:
        lengths = [tf.io.RaggedFeature.RowLengths(name) for name in _row_lengths(feature, features)]
        inner = [tf.io.RaggedFeature.UniformRowLength(size) for size in feature.shape[1:]]
        return tf.io.RaggedFeature(dtype, feature.name, [*lengths, *inner], tf.int64)
    if feature.part == SERIALIZED:
        return tf.io.FixedLenFeature((), dtype, "" if feature.optional else None)
    if feature.is_ragged:
        return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
    if not feature.optional:
        return tf.io.FixedLenFeature(feature.shape, dtype)
    value = _ABSENT.get(feature.kind) if feature.fill is None else feature.fill
    return tf.io.FixedLenFeature(feature.shape, dtype, tf.fill(feature.shape, tf.constant(value, dtype)).numpy())


def _row_lengths(feature: Feature, features: FeatureSpec) -> list[str]:
    """Returns the features with the lengths of a ragged column's inner lists, the outer ones first."""
    return [part.name for part in features.columns[feature.base_name][1:]]


def _cast_tensor(feature: Feature, tensor: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
    if feature.part == SERIALIZED:
        return parse_tensors(feature, tensor)
    if feature.sequence:
        tensor = _steps(tensor, feature.value_shape)
    elif feature.part != FLAT_VALUES and feature.is_ragged and (sizes := _inner_sizes(feature)):
        tensor = _group_values(tensor, sizes)
    return tf.cast(tensor, dtype) if (dtype := _dtype(feature)) != tensor.dtype else tensor


def _tensor_spec(feature: Feature, features: FeatureSpec, batch_size: int | None) -> tf.TypeSpec:
    if feature.part == SERIALIZED:
        return tensors_spec(feature, batch_size)
    shape, ragged_rank = feature.shape, 1
    if feature.part == FLAT_VALUES:
        ragged_rank += len(_row_lengths(feature, features))
        shape = (None,) * ragged_rank + feature.shape[1:]
    elif feature.sequence:
        ragged_rank += None in feature.value_shape
    elif feature.is_ragged:
        shape = (None, *_inner_sizes(feature))
    else:
        return tf.TensorSpec((batch_size, *shape), _dtype(feature))
    return tf.RaggedTensorSpec((batch_size, *shape), _dtype(feature), ragged_rank, row_splits_dtype=tf.int64)


def _inner_sizes(feature: Feature) -> tuple[int | None, ...]:
    """Sizes after the ragged dimension; for an optional array that dimension counts 0 or 1 arrays."""
    return feature.shape[1:] if None in feature.shape else feature.shape


def _group_values(flat: tf.RaggedTensor, sizes: Sequence[int | None]) -> tf.RaggedTensor:
    """Groups the values of flat rows (B, None) into arrays: (B, None, *sizes)."""
    arrays = tf.reshape(flat.values, (-1, *sizes))
    splits = flat.row_splits // math.prod(size or 1 for size in sizes)
    # not validated: the encoder writes whole arrays only, and the check `features` finds what is none
    return tf.RaggedTensor.from_row_splits(arrays, splits, validate=False)


def _steps(steps: tf.RaggedTensor, shape: tuple[int | None, ...]) -> tf.RaggedTensor:
    """Gives the steps (B, None, None) their shape: (B, None, *shape)."""
    if None not in shape:
        return steps.with_values(tf.reshape(steps.flat_values, (-1, *shape)))
    return steps.with_values(_group_values(steps.values, shape[1:])) if shape[1:] else steps


def _dtype(feature: Feature) -> tf.DType:
    return tf.string if feature.kind is Kind.BYTES else tf.as_dtype(feature.number_type)
