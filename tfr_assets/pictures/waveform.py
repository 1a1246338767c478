"""Waveform strips: a look at the recordings of a dataset."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfr_assets.pictures.card import INNER, MARGIN, Card, empty, stroke
from tfr_assets.pictures.palette import ACCENT, EDGE, FAINT
from tfr_assets.pictures.text import SMALL_SIZE, fit, number, width_of
from tfr_assets.pictures.ticks import ticks

if TYPE_CHECKING:
    import numpy as np

MOST_SOUNDS = 12
_ROW, _STRIP, _GAP, _AXIS = 40, 34, 12, 22  # pixels: height of a row, of its curve; room beside texts, and for seconds
_WIDEST_CAPTION = 200


def waveform_strip(sounds: "Sequence[tuple[np.ndarray, int]]", captions: Sequence[str], title: str = "") -> bytes:
    """Draws recordings below each other, on one scale of time: the first 12 of them.

    Each fills its row; its note tells its peak.

    Args:
        sounds: Samples and their rate in Hz. Samples are floats, with 1 as full amplitude, or signed integers; of shape
            (frames,) or (frames, channels). Of channels the outermost values are drawn.
        captions: One per recording. Where there is no room for all of it, its middle is left out.
        title: Stands above.

    Returns:
        A PNG of less than 100 kB.

    Raises:
        ValueError: Not as many captions as recordings, a rate below 1, or samples of another shape or type.
    """
    import numpy as np

    if len(sounds) != len(captions):
        raise ValueError(f"{len(sounds):,} recordings and {len(captions):,} captions: give each recording one")
    shown = sounds[:MOST_SOUNDS]
    for samples, rate in shown:
        if samples.dtype.kind not in "fi" or samples.ndim not in (1, 2) or rate < 1:
            raise ValueError(
                f"samples of {samples.dtype} and shape {samples.shape} at {rate} Hz: they are floats or signed "
                "integers of shape (frames,) or (frames, channels), at 1 Hz or more"
            )
    if not shown:
        return empty(title, "no recordings")
    names = [fit(caption, _WIDEST_CAPTION) for caption in captions[: len(shown)]]
    seconds = [len(samples) / rate for samples, rate in shown]
    longest = max(seconds) or 1.0
    shapes = [
        envelope(samples, round(time / longest * INNER)) for (samples, _), time in zip(shown, seconds, strict=True)
    ]
    peaks = [float(max(high.max(initial=0), -low.min(initial=0))) for low, high in shapes]
    notes = [
        f"{number(time)} s, {rate / 1000:g} kHz, peak {number(peak)}"
        for time, (_, rate), peak in zip(seconds, shown, peaks, strict=True)
    ]
    left = MARGIN + max(map(width_of, names)) + _GAP
    width = MARGIN + INNER - left - max(width_of(note, SMALL_SIZE) for note in notes) - _GAP
    height = len(shown) * _ROW
    card = Card(height + _AXIS, title)
    plot = card.axes(left, card.top, width, height)
    plot.set(xlim=(0, longest), ylim=(height, 0))
    for tick, text in ticks(0, longest, 8).items():
        stroke(plot, (tick, tick), (0, height), EDGE, 0.8)
        card.write(
            left + tick / longest * width, card.top + height + _AXIS / 2, text, FAINT, SMALL_SIZE, align="center"
        )
    card.write(MARGIN + INNER, card.top + height + _AXIS / 2, "seconds", FAINT, SMALL_SIZE, align="right")
    for index, ((low, high), time) in enumerate(zip(shapes, seconds, strict=True)):
        middle = (index + 0.5) * _ROW
        if low.size:
            edges = [time * column / low.size for column in range(low.size + 1)]
            scale = _STRIP / 2 / (peaks[index] or 1)
            below, above = (middle - scale * np.append(values, values[-1]) for values in (low, high))
            plot.fill_between(edges, below, above, step="post", color=ACCENT, linewidth=0.7, zorder=3, clip_on=False)
        card.write(left - _GAP, card.top + middle, names[index], align="right")
        card.write(MARGIN + INNER, card.top + middle, notes[index], FAINT, SMALL_SIZE, align="right")
    return card.png()


def envelope(samples: "np.ndarray", columns: int) -> "tuple[np.ndarray, np.ndarray]":
    """Returns the lowest and the highest amplitude in each column of a strip.

    A column reaches to the first sample of the next, so that no gap stands between them.

    Args:
        samples: As `waveform_strip` takes them.
        columns: Width of the strip.

    Returns:
        Two arrays of float64, with 1 as full amplitude: as long as there are columns, or samples if these are fewer.
    """
    import numpy as np

    if not samples.size:
        return np.empty(0), np.empty(0)
    frames = samples.reshape(len(samples), -1)
    starts = np.linspace(0, len(frames), min(max(columns, 1), len(frames)), endpoint=False, dtype=np.int64)
    # ignoring what is not a number
    lows, highs = np.fmin.reduceat(frames, starts), np.fmax.reduceat(frames, starts)
    lows[:-1] = np.fmin(lows[:-1], frames[starts[1:]])
    highs[:-1] = np.fmax(highs[:-1], frames[starts[1:]])
    return _amplitude(np.fmin.reduce(lows, axis=1)), _amplitude(np.fmax.reduce(highs, axis=1))


def _amplitude(samples: "np.ndarray") -> "np.ndarray":
    import numpy as np

    full = -float(np.iinfo(samples.dtype).min) if samples.dtype.kind == "i" else 1.0
    return np.nan_to_num(samples.astype(np.float64) / full, nan=0, posinf=1, neginf=-1)
