"""A recording's bytes → what its header says, and its samples as they are stored.

libsndfile decodes, libsoxr resamples.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfr_assets.sources.media.audio.containers import check_whole
from tfr_assets.sources.model.audio_options import LARGEST
from tfr_assets.sources.model.kinds import BadFileError

if TYPE_CHECKING:
    from soundfile import SoundFile

_BLOCK = 1 << 20  # frames decoded at a time to see whether they can be
_FRAMES_UNTOLD = 1 << 62  # libsndfile's number of frames, or more, where it does not know it
_FULL_SCALE = 32768  # of 16 bits: a float sample of -1


@dataclass(frozen=True)
class Sound:
    """What is known of a recording, or of the samples that are stored of it.

    Attributes:
        format: `wav`, `flac`, `ogg`, `mp3` or `aiff`.
        rate: Frames a second (Hz).
        channels: Samples per frame.
        frames: Number of frames.
    """

    format: str
    rate: int
    channels: int
    frames: int


@dataclass(frozen=True)
class SampleOptions:
    """How samples are stored.

    Attributes:
        dtype: float32, where full scale is ±1 (recordings of floats and resampled ones can exceed it), or int16.
        rate: Resampled to so many Hz; None: as recorded.
        mono: Whether channels are mixed to one, by their mean.
        length: Frames that every recording is padded to with zeros, or cut to; None: as long as it is.
    """

    dtype: np.dtype
    rate: int | None = None
    mono: bool = False
    length: int | None = None

    def stored(self, sound: Sound) -> Sound:
        """Returns what is stored of a recording, not counting zeros that it is padded with."""
        rate = self.rate or sound.rate
        frames = (2 * sound.frames * rate + sound.rate) // (2 * sound.rate)  # libsoxr rounds to the nearest
        if self.length is not None:
            frames = min(frames, self.length)
        return Sound(sound.format, rate, 1 if self.mono else sound.channels, frames)


def made_by(options: SampleOptions) -> list[str]:
    """Returns the libraries, with their versions, that determine the last bits of samples."""
    import soundfile
    import soxr

    decoder = f"libsndfile {soundfile.__libsndfile_version__}"
    return [decoder] if options.rate is None else [decoder, f"soxr {soxr.__version__}"]


def inspect(data: bytes, decode: bool) -> Sound:
    """Returns what a recording is.

    Args:
        data: The file's bytes.
        decode: Whether to decode all of it, so that a broken body is found, rather than look at headers and end only.

    Raises:
        BadFileError: It is not audio, is cut short or damaged, or holds no sound.
    """
    format_ = check_whole(data)
    with _opened(data) as file:
        if not file.frames:
            raise BadFileError("holds no sound: it has 0 frames")
        if file.frames >= _FRAMES_UNTOLD:
            how = "it is FLAC as written to a pipe" if format_ == "flac" else "its header leaves out all of its sound"
            raise BadFileError(f"does not show its length: {how}; convert it to a file")
        if format_ == "flac":
            _check_last_frame(file)
        frames = _decodable_frames(file) if decode else file.frames
        return Sound(format_, file.samplerate, file.channels, frames)


def check_storable(sound: Sound) -> None:
    """Raises BadFileError if the stored samples of a recording are none, or more than a record can hold."""
    if not sound.frames:
        raise BadFileError(f"is too short: it has no frame at {sound.rate:,} Hz")
    if sound.frames * sound.channels > LARGEST:
        raise BadFileError(
            f"is too long: {sound.frames:,} frames × {sound.channels} channels are more than the {LARGEST:,} samples "
            "that a record can hold"
        )


def decode_into(data: memoryview, options: SampleOptions, out: np.ndarray) -> None:
    """Decodes a recording into the samples that are stored of it.

    Args:
        data: The file's bytes.
        options: How it is stored.
        out: Written: shape (frames, channels) as `options.stored` says, of `options.dtype`.

    Raises:
        BadFileError: It cannot be decoded, or not to so many samples.
    """
    with _opened(data) as file:  # read in one go: after seeking, MP3 decodes to samples that differ in the last bit
        as_recorded = file.samplerate == (options.rate or file.samplerate) and file.channels == out.shape[1]
        if as_recorded and (options.dtype == np.float32 or file.subtype == "PCM_16"):
            _check_length(len(file.read(out=out)), len(out))
            return
        samples = file.read(dtype="float32", always_2d=True)
        rate = file.samplerate
    if samples.shape[1] != out.shape[1]:
        samples = _mixed(samples)
    if options.rate is not None and options.rate != rate:
        import soxr

        samples = soxr.resample(samples, rate, options.rate)
    _check_length(len(samples), len(out))
    samples = samples[: len(out)]
    if options.dtype == np.int16:
        samples = samples * np.float32(_FULL_SCALE)
        np.rint(samples, out=samples)
        np.clip(samples, -_FULL_SCALE, _FULL_SCALE - 1, out=samples)
    out[:] = samples


@contextmanager
def _opened(data: bytes | memoryview) -> "Iterator[SoundFile]":
    """Opens a recording; what the decoder complains of, then or later, becomes a BadFileError."""
    import soundfile

    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            yield file
    except soundfile.LibsndfileError as error:
        reason = error.error_string.removeprefix("Error : ").rstrip(".")
        raise BadFileError(f"is damaged or cannot be decoded: {reason}") from error


def _check_last_frame(file: "SoundFile") -> None:
    """Checks that a FLAC file is complete; leaves the position there."""
    try:
        file.seek(file.frames - 1)
    except RuntimeError as error:
        raise BadFileError("is cut short or damaged: its last frame cannot be reached") from error


def _decodable_frames(file: "SoundFile") -> int:
    """Returns the number of frames that can be decoded from the begin on, all of their samples being finite numbers."""
    count = 0
    file.seek(0)
    while len(block := file.read(_BLOCK, dtype="float32")):
        if not np.isfinite(block).all():
            raise BadFileError(
                f"holds samples that are not finite numbers, {count / file.samplerate:.1f} s in or later"
            )
        count += len(block)
    return count


def _mixed(samples: np.ndarray) -> np.ndarray:
    """Returns the mean of all channels: shape (frames, channels) → (frames, 1)."""
    mix = samples[:, :1].copy()
    for channel in range(1, samples.shape[1]):  # numpy's mean along so short an axis is ten times slower
        mix += samples[:, channel : channel + 1]
    mix /= samples.shape[1]
    return mix


def _check_length(found: int, expected: int) -> None:
    if found < expected:
        raise BadFileError(
            f"decodes to {found:,} frames, not to {expected:,} as when it was listed, maybe by another version of "
            "libsndfile; materialize raw again"
        )
