"""Encoded images and recordings → tensors.

| feature          | shape asked for      | tensor                                                             |
|------------------|----------------------|--------------------------------------------------------------------|
| `image/encoded`  | none                 | uint8, ragged `(B, None, None, 3)`: every image has its own size   |
|                  | `(height, width, n)` | uint8, dense `(B, height, width, n)`; another size is an error     |
| `audio/encoded`  | none                 | float32, ragged `(B, None, channels)`: samples between -1 and 1    |
|                  | `(samples, n)`       | float32, dense `(B, samples, n)`; another length is an error       |

Recordings of a batch must have one number of channels. An absent image has no pixels, an absent recording no samples.
Of an animation, the first picture is taken.
"""

import io
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from tfr_assets.errors import ConfigError
from tfr_assets.reading.tensors.spec import Tensors
from tfr_assets.records.schema.features import FeatureSpec

Shape = tuple[int, ...]
Decode: TypeAlias = bool | Collection[str] | Mapping[str, Shape | None]
_IMAGE, AUDIO = "image/encoded", "audio/encoded"
_RANK = {_IMAGE: 3, AUDIO: 2}


def decoded_features(features: FeatureSpec, decode: Decode) -> dict[str, Shape | None]:
    """Returns which features to decode, and to which shape.

    Args:
        features: All features. Those named `image/encoded` and `audio/encoded`, perhaps behind another name and a
            slash, can be decoded.
        decode: All of them, some, or some with the shape that they are known to have.

    Raises:
        ConfigError: A feature is none of these, or a shape is invalid.
    """
    there = [f.name for f in features.features if kind_of(f.name) and not f.shape and not f.sequence]
    known = f"there are {', '.join(there)}" if there else f"there is no {_IMAGE} or {AUDIO}"
    if decode is False:
        return {}
    if isinstance(decode, bool):
        if not there:
            raise ConfigError(f"decode=True: {known} among the columns; leave it out")
        return dict.fromkeys(there)
    names = {decode} if isinstance(decode, str) else decode
    if not isinstance(names, Collection):
        raise ConfigError(f"decode={decode!r} must be True, False, or some of the features' names; {known}")
    chosen = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names)
    for name, shape in chosen.items():
        if name not in there:
            raise ConfigError(f"decode: {name!r} cannot be decoded; {known}")
        if shape is not None and not _is_shape(shape, _RANK[kind_of(name)]):
            example = "(28, 28, 3)" if kind_of(name) == _IMAGE else "(16000, 1)"
            raise ConfigError(f"decode: {name!r} cannot be of shape {shape!r}; give one such as {example}, or None")
    return chosen


def decoder(decode: Mapping[str, Shape | None]) -> Callable[[Tensors], Tensors]:
    """Returns a function that decodes some features of a batch and passes the others on."""

    def decode_batch(tensors: Tensors) -> Tensors:
        return {name: _decode(name, tensor, decode) if name in decode else tensor for name, tensor in tensors.items()}

    return decode_batch


def _decode(name: str, encoded: tf.Tensor, decode: Mapping[str, Shape | None]) -> tf.Tensor | tf.RaggedTensor:
    shape = decode[name]
    if kind_of(name) == _IMAGE:
        ragged = tf.RaggedTensorSpec((None, None, 3), tf.uint8, 1, tf.int64)
        signature = ragged if shape is None else tf.TensorSpec(shape, tf.uint8)
        return tf.map_fn(lambda one: _image(one, shape), encoded, fn_output_signature=signature)
    if shape is not None:
        signature = tf.TensorSpec(shape, tf.float32)
        return tf.map_fn(lambda one: tf.ensure_shape(_samples(one), shape), encoded, fn_output_signature=signature)
    flat_signature = tf.RaggedTensorSpec((None,), tf.float32, 0, tf.int64)
    signature = (flat_signature, tf.TensorSpec((), tf.int64))
    flat, channels = tf.map_fn(_flat_samples, encoded, fn_output_signature=signature)
    channels = _common_channels(name, tf.boolean_mask(channels, flat.row_lengths() > 0))
    return tf.RaggedTensor.from_row_lengths(
        tf.reshape(flat.flat_values, (-1, channels)), flat.row_lengths() // channels, validate=False
    )


def batch_recordings(tensors: Tensors, decode: Mapping[str, Shape | None]) -> Tensors:
    """Makes of recordings that were decoded each alone, and then batched, what `decoder` makes of a batch."""

    def batched(name: str, tensor: tf.RaggedTensor) -> tf.RaggedTensor:
        channels = _common_channels(name, tensor.values.row_lengths())
        samples = tf.reshape(tensor.flat_values, (-1, channels))
        return tf.RaggedTensor.from_row_splits(samples, tensor.row_splits, validate=False)

    ragged = {name for name, shape in decode.items() if kind_of(name) == AUDIO and shape is None}
    return {name: batched(name, tensor) if name in ragged else tensor for name, tensor in tensors.items()}


def _common_channels(name: str, channels: tf.Tensor) -> tf.Tensor:
    most = tf.reduce_max(tf.concat([[1], channels], 0))
    least = tf.reduce_min(tf.concat([[most], channels], 0))
    problem = (
        f"decode: {name} holds recordings of different numbers of channels in one batch; write them with `mono: true`"
    )
    with tf.control_dependencies([tf.debugging.Assert(tf.equal(most, least), [problem, least, most])]):
        return tf.identity(most)


def _image(encoded: tf.Tensor, shape: Shape | None) -> tf.Tensor | tf.RaggedTensor:
    channels = 3 if shape is None else shape[-1]
    image = tf.cond(
        tf.equal(encoded, ""),
        lambda: tf.zeros((0, 0, channels), tf.uint8),
        lambda: tf.io.decode_image(encoded, channels, expand_animations=False),
    )
    image = tf.ensure_shape(image, shape or (None, None, channels))
    return tf.RaggedTensor.from_tensor(image, ragged_rank=1, row_splits_dtype=tf.int64) if shape is None else image


def _samples(encoded: tf.Tensor) -> tf.Tensor:
    samples = tf.cond(
        _is_wav_of_16_bits(encoded),
        lambda: tf.audio.decode_wav(encoded).audio,
        lambda: tf.numpy_function(_decode_sound, [encoded], tf.float32),
    )
    return tf.ensure_shape(samples, (None, None))


def _flat_samples(encoded: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    samples = _samples(encoded)
    return tf.reshape(samples, (-1,)), tf.shape(samples, tf.int64)[1]


def _is_wav_of_16_bits(encoded: tf.Tensor) -> tf.Tensor:
    """Whether TensorFlow itself can decode a recording: its header says RIFF, PCM and 16 bits in the usual places."""
    header = tf.strings.substr(encoded, 0, 36)
    return tf.strings.regex_full_match(header, r"RIFF\C{4}WAVEfmt \C{4}\x01\x00\C{12}\x10\x00")


def _decode_sound(encoded: bytes) -> np.ndarray:
    import soundfile  # not above: few datasets hold sounds

    if not encoded:
        return np.zeros((0, 1), np.float32)
    return soundfile.read(io.BytesIO(encoded), dtype="float32", always_2d=True)[0]


def kind_of(name: str) -> str:
    """Returns what an encoded feature holds, as its name tells; nothing if it cannot be decoded."""
    return next((kind for kind in (_IMAGE, AUDIO) if name == kind or name.endswith(f"/{kind}")), "")


def _is_shape(shape: object, rank: int) -> bool:
    return isinstance(shape, tuple) and len(shape) == rank and all(isinstance(size, int) and size > 0 for size in shape)
