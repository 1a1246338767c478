"""Notes as WAV files, made by adding up harmonics."""

import io
import wave
from collections.abc import Iterator

import numpy as np

RATE = 8_000  # samples a second
_SECONDS = 0.5
_NOTES = ("C", "Cs", "D", "Ds", "E", "F", "Fs", "G", "Gs", "A", "As", "B")
_OCTAVES = (4, 5)
_SOUNDS = 10


def tone_files() -> dict[str, bytes]:
    """Returns 240 recordings of half a second by path: the note's folder and a number, such as `A4/03.wav`."""
    return {f"{note}/{number:02d}.wav": content for note, _, number, content in tones()}


def tones() -> Iterator[tuple[str, float, int, bytes]]:
    """Yields name, frequency (Hz), number of the sound and the WAV file of each."""
    for octave in _OCTAVES:
        for step, name in enumerate(_NOTES):
            frequency = 440.0 * 2 ** ((octave - 4) + (step - 9) / 12)  # equal temperament; A4 is 440 Hz
            for number in range(_SOUNDS):
                yield f"{name}{octave}", frequency, number, _recording(frequency, number)


def _recording(frequency: float, number: int) -> bytes:
    """Returns a WAV file, 16 bit mono; its number decides over brightness, attack and loudness."""
    seconds = np.arange(int(RATE * _SECONDS)) / RATE
    brightness, attack, loudness = 0.2 + 0.06 * number, 0.005 * (1 + number % 4), 0.4 + 0.05 * (number % 5)
    sound = np.zeros_like(seconds)
    for harmonic in range(1, int(RATE / 2 // frequency) + 1):
        sound += brightness ** (harmonic - 1) * np.sin(2 * np.pi * frequency * harmonic * seconds)
    sound *= np.minimum(seconds / attack, 1.0) * np.exp(-3.0 * seconds)
    samples = np.round(sound / np.abs(sound).max() * loudness * 32767).astype("<i2")
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())
    return content.getvalue()
