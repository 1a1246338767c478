"""Images and recordings as tensors, against Pillow and soundfile."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile
import tensorflow as tf
from PIL import Image

import tfr_assets
from tests.sources import media_files, recordings
from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout
from tfr_assets.reading.registry import READERS

Written = Callable[..., Layout]


def images(sizes: list[tuple[int, int]], format_: str = "PNG", mode: str = "RGB") -> list[bytes]:
    return [
        media_files.encoded(media_files.image(mode, height, width, seed), format_)
        for seed, (height, width) in enumerate(sizes)
    ]


def pixels(encoded: bytes, mode: str = "RGB") -> np.ndarray:
    with Image.open(io.BytesIO(encoded)) as image:
        return np.asarray(image.convert(mode))


@pytest.mark.parametrize("reader", ["vectorized", "naive", "cache_memory", "cache_file", "file_queue"])
def test_images_of_several_sizes_are_ragged_and_pixel_for_pixel(written: Written, reader: str) -> None:
    encoded = images([(4, 7), (6, 2), (5, 5)])
    layout = written(pa.table({"image/encoded": encoded, "label": [0, 1, 2]}))
    dataset = tfr_assets.read(layout.folder, 2, decode=True, reader=reader)
    spec = dataset.element_spec["image/encoded"]
    assert (spec.shape.as_list(), spec.dtype, spec.ragged_rank) == ([None, None, None, 3], tf.uint8, 2)
    found = {
        int(label): image
        for batch in dataset
        for label, image in zip(batch["label"], batch["image/encoded"], strict=True)
    }
    for label, content in enumerate(encoded):
        np.testing.assert_array_equal(found[label].to_tensor().numpy(), pixels(content))


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3), ("RGBA", 4)])
def test_images_of_one_size_are_dense(written: Written, mode: str, channels: int) -> None:
    encoded = images([(5, 6)] * 3, mode=mode)
    layout = written(pa.table({"image/encoded": encoded}))
    dataset = tfr_assets.read(layout.folder, 2, decode={"image/encoded": (5, 6, channels)})
    assert dataset.element_spec["image/encoded"].shape.as_list() == [None, 5, 6, channels]
    found = np.concatenate([batch["image/encoded"].numpy() for batch in dataset])
    np.testing.assert_array_equal(found.squeeze(), np.stack([pixels(content, mode) for content in encoded]))


def test_another_size_than_promised_is_an_error(written: Written) -> None:
    layout = written(pa.table({"image/encoded": images([(5, 6), (6, 5)])}))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected"):
        list(tfr_assets.read(layout.folder, decode={"image/encoded": (5, 6, 3)}))


@pytest.mark.parametrize("format_", ["JPEG", "GIF", "BMP"])
def test_images_of_other_formats(written: Written, format_: str) -> None:
    (encoded,) = images([(8, 8)], format_)
    (batch,) = tfr_assets.read(written(pa.table({"image/encoded": [encoded]}), shards=1).folder, decode=True)
    found = batch["image/encoded"][0].to_tensor().numpy()
    assert np.abs(found.astype(int) - pixels(encoded)).max() <= (4 if format_ == "JPEG" else 0)


def test_an_absent_image_has_no_pixels(written: Written) -> None:
    layout = written(pa.table({"image/encoded": [*images([(3, 4)]), None]}), shards=1)
    (batch,) = tfr_assets.read(layout.folder, decode=["image/encoded"])
    assert batch["image/encoded"].row_lengths().numpy().tolist() == [3, 0]


@pytest.mark.parametrize("form", [("WAV", "PCM_16"), ("WAV", "PCM_24"), ("FLAC", "PCM_16"), ("OGG", "VORBIS")])
def test_recordings_are_samples_as_soundfile_reads_them(written: Written, form: tuple[str, str]) -> None:
    contents = []
    for seconds in (0.1, 0.2):
        file = io.BytesIO()
        soundfile.write(file, recordings.tone(seconds=seconds, channels=2), 16000, format=form[0], subtype=form[1])
        contents.append(file.getvalue())
    layout = written(pa.table({"audio/encoded": contents}), shards=1)
    dataset = tfr_assets.read(layout.folder, decode=True)
    assert dataset.element_spec["audio/encoded"].dtype == tf.float32
    (batch,) = dataset
    for content, found in zip(contents, batch["audio/encoded"], strict=True):
        expected = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)[0]
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("reader", [name for name in READERS if name not in ("data_service", "merged")])
def test_every_reader_gives_recordings_alike(written: Written, reader: str) -> None:
    samples = [recordings.tone(seconds=seconds, channels=2) for seconds in (0.1, 0.2)]
    contents = [recordings.wav16(samples[0]), None, recordings.wav16(samples[1])]
    layout = written(pa.table({"audio/encoded": contents, "id": range(3)}), shards=1)
    dataset = tfr_assets.read(layout.folder, decode=True, reader=reader)
    spec = dataset.element_spec["audio/encoded"]
    assert (spec.shape.as_list(), spec.dtype, spec.ragged_rank) == ([None, None, None], tf.float32, 1)
    (batch,) = dataset
    found = dict(zip(batch["id"].numpy().tolist(), batch["audio/encoded"], strict=True))
    assert found[1].shape == (0, 2)
    for row, content in ((0, contents[0]), (2, contents[2])):
        expected = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)[0]
        np.testing.assert_array_equal(found[row].numpy(), expected)


@pytest.mark.parametrize("reader", ["vectorized", "naive"])
def test_recordings_of_one_and_of_two_channels_in_a_batch_are_an_error(written: Written, reader: str) -> None:
    contents = [recordings.wav16(recordings.tone(seconds=0.1, channels=count)) for count in (1, 2)]
    dataset = tfr_assets.read(
        written(pa.table({"audio/encoded": contents}), shards=1).folder, decode=True, reader=reader
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="audio/encoded holds recordings of different numbers of"):
        list(dataset)


def test_recordings_of_one_length_are_dense(written: Written) -> None:
    wav = recordings.wav16(recordings.tone(seconds=0.1))
    layout = written(pa.table({"audio/encoded": [wav, wav]}), shards=1)
    dataset = tfr_assets.read(layout.folder, decode={"audio/encoded": (1600, 1)})
    assert dataset.element_spec["audio/encoded"].shape.as_list() == [None, 1600, 1]
    (batch,) = dataset
    assert batch["audio/encoded"].shape == (2, 1600, 1)


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        (True, "there is no image/encoded or audio/encoded among the columns; leave it out"),
        (5, "decode=5 must be True, False, or some of the features' names"),
        (["x"], "'x' cannot be decoded"),
        ({"image/encoded": (1, 1, 1)}, "'image/encoded' cannot be decoded"),
    ],
)
def test_what_cannot_be_decoded_is_refused(numbers: Layout, decode: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tfr_assets.read(numbers.folder, decode=decode)


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 0), [5, 6, 3], 7])
def test_a_shape_that_cannot_be_is_refused(written: Written, shape: Any) -> None:
    layout = written(pa.table({"image/encoded": images([(5, 6)])}), shards=1)
    with pytest.raises(ConfigError, match=r"cannot be of shape .*; give one such as \(28, 28, 3\)"):
        tfr_assets.read(layout.folder, decode={"image/encoded": shape})
