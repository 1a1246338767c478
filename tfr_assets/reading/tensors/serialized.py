"""Serialized tensors → tensors: what `tf.io.parse_tensor` makes of each record's bytes, for whole batches."""

import math

import numpy as np
import tensorflow as tf

from tfr_assets.records.examples.tensor_proto import dtype_number, header
from tfr_assets.records.schema.features import Feature

_AS_RAW = {tf.uint32: tf.int32, tf.uint64: tf.int64}  # types that `tf.io.decode_raw` does not know, of equal size


def dtype_of(feature: Feature) -> tf.DType:
    """Returns the type of a serialized tensor's values."""
    return tf.as_dtype(dtype_number(feature.value_type))


def tensors_spec(feature: Feature, batch_size: int | None) -> tf.TypeSpec:
    """Returns the type and shape of what `parse_tensors` gives."""
    shape, dtype = feature.shape, dtype_of(feature)
    if not shape:
        return tf.TensorSpec((batch_size,), tf.string)
    if None in shape:
        return tf.RaggedTensorSpec((batch_size, *shape), dtype, _ragged_rank(shape) + 1, tf.int64)
    if _is_none_or_one(feature):
        return tf.RaggedTensorSpec((batch_size, None, *shape), dtype, 1, tf.int64)
    return tf.TensorSpec((batch_size, *shape), dtype)


def parse_tensors(feature: Feature, serialized: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
    """Parses a batch of serialized tensors.

    Args:
        feature: Tells their type and shape.
        serialized: Strings of shape (B,), empty where a record lacks the feature.

    Returns:
        Dense tensors of shape (B, n, …) where the shape is fixed, ragged ones (B, None, …) where sizes vary, and the
        bytes as they are where even the number of sizes does. An absent tensor of a fixed shape is `fill`, NaN or an
        empty string everywhere; one of integers without `fill` is no tensor in its row of (B, None, n, …).
    """
    shape, dtype = feature.shape, dtype_of(feature)
    if not shape:
        return serialized
    if None in shape:
        return _parse_ragged(serialized, shape, dtype)
    if not feature.optional:
        return _parse_fixed(serialized, shape, dtype)
    present = tf.not_equal(serialized, "")
    tensors = _parse_fixed(tf.boolean_mask(serialized, present), shape, dtype)
    if _is_none_or_one(feature):
        return tf.RaggedTensor.from_row_lengths(tensors, tf.cast(present, tf.int64), validate=False)
    absent = tf.constant(np.full((1, *(size or 0 for size in shape)), _absent_value(feature, dtype)), dtype)
    index = tf.where(present, tf.cumsum(tf.cast(present, tf.int64)), 0)
    return tf.gather(tf.concat([absent, tensors], 0), index)


def _is_none_or_one(feature: Feature) -> bool:
    dtype = dtype_of(feature)
    return feature.optional and (dtype.is_integer or dtype.is_bool) and feature.fill is None


def _absent_value(feature: Feature, dtype: tf.DType) -> int | float | str | bool:
    if feature.fill is None:
        return math.nan if dtype.is_floating else ""
    return bool(feature.fill) if dtype.is_bool else feature.fill


def _parse_fixed(serialized: tf.Tensor, shape: tuple[int | None, ...], dtype: tf.DType) -> tf.Tensor:
    if dtype == tf.string:
        return tf.map_fn(
            lambda one: tf.ensure_shape(tf.io.parse_tensor(one, dtype), shape),
            serialized,
            fn_output_signature=tf.TensorSpec(shape, dtype),
        )
    # what stands before the values is equal for all, so that one call decodes the whole batch
    sizes = [size for size in shape if size is not None]
    content = math.prod(sizes) * dtype.size
    values = tf.strings.substr(serialized, len(header(dtype.as_datatype_enum, sizes, content)), content)
    raw = tf.reshape(tf.io.decode_raw(values, _AS_RAW.get(dtype, dtype)), (-1, *shape))
    return tf.bitcast(raw, dtype) if dtype in _AS_RAW else raw


def _parse_ragged(serialized: tf.Tensor, shape: tuple[int | None, ...], dtype: tf.DType) -> tf.RaggedTensor:
    rank = _ragged_rank(shape)

    def parse(one: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        absent = tf.zeros([size or 0 for size in shape], dtype)
        tensor = tf.cond(tf.equal(one, ""), lambda: absent, lambda: tf.io.parse_tensor(one, dtype))
        tensor = tf.ensure_shape(tensor, shape)
        return tf.RaggedTensor.from_tensor(tensor, ragged_rank=rank) if rank else tensor

    return tf.map_fn(parse, serialized, fn_output_signature=tf.RaggedTensorSpec(shape, dtype, rank, tf.int64))


def _ragged_rank(shape: tuple[int | None, ...]) -> int:
    """Dimensions of one tensor before the last that varies."""
    return max(axis for axis, size in enumerate(shape) if size is None)
