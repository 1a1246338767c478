import io
import wave
from math import lcm

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.sources.recordings import FORMATS, encoded, of_format, tone, wav16
from tfr_assets.sources.media.audio.samples import SampleOptions, check_storable, decode_into, inspect
from tfr_assets.sources.model.kinds import BadFileError

INT16 = st.integers(1, 4).flatmap(
    lambda channels: arrays.arrays(np.int16, st.tuples(st.integers(1, 200), st.just(channels)))
)


def decoded(data: bytes, dtype: str = "float32", **options: object) -> np.ndarray:
    """Returns what is stored of a file: shape (frames, channels)."""
    how = SampleOptions(np.dtype(dtype), **options)  # type: ignore[arg-type]
    stored = how.stored(inspect(data, decode=True))
    out = np.full((stored.frames, stored.channels), 99, dtype)
    decode_into(memoryview(data), how, out)
    return out


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_floats_of_wav_are_tensorflows(channels: int) -> None:
    import tensorflow as tf

    data = wav16(np.random.default_rng(1).integers(-32768, 32768, (3000, channels), np.int16))
    np.testing.assert_array_equal(decoded(data), tf.audio.decode_wav(data).audio.numpy())


@given(INT16)
@settings(deadline=None)
def test_whole_numbers_of_wav_are_pythons(samples: np.ndarray) -> None:
    data = wav16(samples)
    with wave.open(io.BytesIO(data)) as reader:
        expected = np.frombuffer(reader.readframes(reader.getnframes()), "<i2").reshape(samples.shape)
    np.testing.assert_array_equal(decoded(data, "int16"), expected)


@pytest.mark.parametrize(("format_", "more"), [("FLAC", {}), ("AIFF", {}), ("WAV", {"endian": "BIG"})])
@given(INT16)
@settings(max_examples=30, deadline=None)
def test_16_bits_of_every_lossless_format_come_back(format_: str, more: dict[str, str], samples: np.ndarray) -> None:
    data = encoded(samples, 16000, format_, "PCM_16", **more)
    np.testing.assert_array_equal(decoded(data, "int16"), samples)
    np.testing.assert_array_equal(decoded(data), samples.astype(np.float32) / 32768)


@given(arrays.arrays(np.int32, st.tuples(st.integers(1, 100), st.just(1)), elements=st.integers(-(2**23), 2**23 - 1)))
@settings(deadline=None)
def test_24_bits_are_rounded_to_16(samples: np.ndarray) -> None:
    data = encoded(samples << 8, 16000, "WAV", "PCM_24")
    expected = np.minimum(np.round(samples / 256), 32767)  # numpy's round and this module's go to even numbers at .5
    np.testing.assert_array_equal(decoded(data, "int16"), expected)
    np.testing.assert_array_equal(decoded(data), samples / np.float32(2**23))


def test_8_bits_become_the_upper_half_of_16() -> None:
    samples = np.arange(-128, 128, dtype=np.int16)[:, None] * 256
    data = encoded(samples, 8000, "WAV", "PCM_U8")
    np.testing.assert_array_equal(decoded(data, "int16"), samples)


def test_floats_beyond_full_scale_are_clipped_in_16_bits_only() -> None:
    samples = np.array([[-2], [-1], [-0.5], [0], [0.5], [1], [1e30]], np.float32)
    data = encoded(samples, 16000, "WAV", "FLOAT")
    np.testing.assert_array_equal(decoded(data), samples)
    np.testing.assert_array_equal(decoded(data, "int16")[:, 0], [-32768, -32768, -16384, 0, 16384, 32767, 32767])


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_decodes_to_its_sound(name: str) -> None:
    samples = tone(channels=2)
    out = decoded(of_format(name, samples))
    expected, _ = soundfile.read(io.BytesIO(of_format(name, samples)), dtype="float32")
    np.testing.assert_allclose(out, expected, atol=1e-6)  # it seeks first, which changes the last bit of MP3
    np.testing.assert_array_equal(out, decoded(of_format(name, samples)))
    for channel in range(2):  # what a lossy encoder keeps
        assert np.corrcoef(out[500:-500, channel], samples[500:-500, channel])[0, 1] > 0.99
    whole = decoded(of_format(name, samples), "int16")
    np.testing.assert_allclose(whole / 32768, np.clip(out, -1, 32767 / 32768), atol=0.5 / 32768)


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_mono_is_the_mean_of_channels(channels: int) -> None:
    samples = np.random.default_rng(2).integers(-32768, 32768, (500, channels), np.int16)
    mean = samples.astype(np.float64).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(decoded(wav16(samples), mono=True), mean / 32768, atol=1e-6)
    np.testing.assert_allclose(decoded(wav16(samples), "int16", mono=True), mean, atol=0.51)


@pytest.mark.parametrize(
    ("rate", "new"), [(8000, 16000), (44100, 16000), (16000, 8000), (48000, 44100), (22050, 48000)]
)
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_a_resampled_tone_keeps_its_pitch_and_energy(rate: int, new: int, dtype: str) -> None:
    data = of_format("wav", tone(1000, rate, seconds=1, channels=2), rate)
    out = decoded(data, dtype, rate=new).astype(np.float64)
    out /= 32768 if dtype == "int16" else 1
    assert out.shape == (new, 2)
    middle = out[new // 4 : -new // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))[:, None], axis=0))
    assert (spectrum.argmax(axis=0) * new / len(middle) == 1000).all()
    np.testing.assert_allclose(np.sqrt(2 * (middle**2).mean(axis=0)), [0.5, 0.25], rtol=0.005)


def test_what_a_lower_rate_cannot_hold_is_gone() -> None:
    data = of_format("wav", tone(6000, 16000, seconds=1), 16000)
    out = decoded(data, rate=8000)[1000:-1000]
    assert np.sqrt((out**2).mean()) < 0.01  # folded back to 2000 Hz, it would be 0.35; what is left is the noise


@given(
    st.integers(1, 5000), st.integers(1, 2), st.sampled_from([4000, 8000, 11025, 16000, 22050, 44100, 48000]), st.data()
)
@settings(max_examples=60, deadline=None)
def test_the_length_of_what_is_resampled_is_known_before(
    frames: int, channels: int, rate: int, data: st.DataObject
) -> None:
    new = data.draw(st.sampled_from([8000, 16000, 22050, 44100]))
    file = wav16(np.full((frames, channels), 1000, np.int16), rate)
    exact = frames * lcm(rate, new) / rate
    stored = SampleOptions(np.dtype("float32"), new).stored(inspect(file, decode=True))
    assert abs(stored.frames * lcm(rate, new) / new - exact) <= lcm(rate, new) / new / 2
    out = decoded(file, rate=new)
    assert len(out) == stored.frames
    assert (out != 99).all()  # all of it was written


def test_a_recording_is_cut_to_a_length() -> None:
    data = of_format("wav", tone(), 16000)
    np.testing.assert_array_equal(decoded(data, length=100), decoded(data)[:100])
    np.testing.assert_array_equal(decoded(data, rate=8000, length=100), decoded(data, rate=8000)[:100])
    assert len(decoded(data, length=9000)) == 8000  # padding is not its concern


def test_what_a_record_cannot_hold_is_refused() -> None:
    sound = inspect(wav16(np.ones((10, 1), np.int16), 48000), decode=True)
    with pytest.raises(BadFileError, match="is too short: it has no frame at 1,000 Hz"):
        check_storable(SampleOptions(np.dtype("float32"), 1000).stored(sound))
    with pytest.raises(BadFileError, match=r"is too long: .* more than the 268,435,456 samples"):
        check_storable(SampleOptions(np.dtype("float32"), 2_000_000_000_000).stored(sound))


@pytest.mark.parametrize("options", [{}, {"mono": True}])
def test_another_length_than_listed_is_an_error(options: dict[str, bool]) -> None:
    with pytest.raises(BadFileError, match="decodes to 8,000 frames, not to 9,000 as when it was listed"):
        decode_into(
            memoryview(of_format("wav")),
            SampleOptions(np.dtype("float32"), **options),
            np.zeros((9000, 2 - len(options)), "f4"),
        )
