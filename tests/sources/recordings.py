"""Recordings made for tests: tones and noise in every format, and what can be wrong with them."""

import io
import struct
import wave
from typing import Any

import numpy as np
import soundfile

FORMATS = {  # format as records tell it: soundfile's format and subtype
    "wav": ("WAV", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "ogg": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "aiff": ("AIFF", "PCM_16"),
}


def tone(hertz: float = 440, rate: int = 16000, seconds: float = 0.5, channels: int = 1) -> np.ndarray:
    """Returns a sine with a little noise: float32 of shape (frames, channels); each channel is softer than the last."""
    time = np.arange(round(rate * seconds)) / rate
    noise = np.random.default_rng(0).uniform(-0.01, 0.01, (len(time), channels))
    sine = 0.5 * np.sin(2 * np.pi * hertz * time)
    return (sine[:, None] / np.arange(1, channels + 1) + noise).astype(np.float32)


def encoded(
    samples: np.ndarray, rate: int = 16000, format_: str = "WAV", subtype: str | None = None, **more: Any
) -> bytes:
    """Returns a file's bytes, written by soundfile; `samples` have the shape (frames, channels)."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=format_, subtype=subtype, **more)
    return file.getvalue()


def of_format(name: str, samples: np.ndarray | None = None, rate: int = 16000) -> bytes:
    """Returns a file of one of `FORMATS`."""
    return encoded(tone(channels=2) if samples is None else samples, rate, *FORMATS[name])


def wav16(samples: np.ndarray, rate: int = 16000) -> bytes:
    """Returns a WAV file's bytes, written by Python's own module; `samples` are int16 of shape (frames, channels)."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(samples.shape[1])
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


def with_data_size(wav: bytes, size: int) -> bytes:
    """Returns a WAV file whose header tells another number of bytes of sound."""
    at = wav.index(b"data") + 4
    return wav[:at] + struct.pack("<I", size) + wav[at + 4 :]


def without_xing(mp3: bytes) -> bytes:
    """Returns an MP3 file without its first frame, which tells the number of frames."""
    tag = max(mp3.find(b"Xing"), mp3.find(b"Info"))
    return mp3[mp3.index(mp3[:2], tag) :]


def id3(body: bytes) -> bytes:
    """Returns an ID3v2 tag, as it lies before MP3 and sometimes FLAC; `body` is shorter than 16 KiB."""
    return b"ID3\x04\x00\x00" + bytes([0, 0, len(body) >> 7, len(body) & 0x7F]) + body
