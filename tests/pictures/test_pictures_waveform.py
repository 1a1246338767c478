import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.pictures.pixels import pixels, where
from tfr_assets.pictures import MOST_SOUNDS, waveform_strip
from tfr_assets.pictures.palette import ACCENT, CARD
from tfr_assets.pictures.waveform import envelope

RATE = 8000
TONE = np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)


@settings(deadline=None)
@given(hnp.arrays(np.float32, st.integers(1, 200), elements=st.floats(-1, 1, width=32)), st.integers(0, 60))
def test_the_envelope_holds_every_sample(samples: np.ndarray, columns: int) -> None:
    low, high = envelope(samples, columns)
    assert len(low) == len(high) == min(max(columns, 1), len(samples))
    starts = [at * len(samples) // len(low) for at in range(len(low))]
    for at, (start, end) in enumerate(zip(starts, [*starts[1:], len(samples)], strict=True)):
        assert low[at] == samples[start : end + 1].min()
        assert high[at] == samples[start : end + 1].max()


def test_integers_are_amplitudes_too() -> None:
    for kind in (np.int16, np.int32):
        full = np.iinfo(kind)
        low, high = envelope(np.array([full.min, 0, full.max // 2], kind), 1)
        assert low == [-1]
        assert high == pytest.approx(0.5, abs=1e-4)


def test_of_channels_the_outermost_values_count() -> None:
    low, high = envelope(np.array([[0.5, -0.25], [0.1, -0.75]]), 1)
    assert (low, high) == ([-0.75], [0.5])


def test_what_is_no_number_is_left_out() -> None:
    low, high = envelope(np.array([np.nan, 0.5, -0.25, np.nan]), 1)
    assert (low, high) == ([-0.25], [0.5])
    low, high = envelope(np.array([np.inf, -np.inf]), 1)
    assert (low, high) == ([-1], [1])
    assert envelope(np.full(4, np.nan), 2)[0].tolist() == [0, 0]


def test_a_strip_is_as_long_as_its_sound() -> None:
    sounds = [(TONE, RATE), (TONE[: RATE // 2], RATE), (np.tile(TONE, 2), 4 * RATE)]
    found = where(pixels(waveform_strip(sounds, ["1 s", "half", "half, faster"])), ACCENT)
    lengths = []
    for row in range(3):
        columns = np.flatnonzero(found[20 + row * 40 : 60 + row * 40].any(axis=0))
        lengths.append(columns.max() + 1 - columns.min())
    assert lengths[0] > 500
    assert lengths[1] == pytest.approx(lengths[0] / 2, abs=2)
    assert lengths[2] == pytest.approx(lengths[0] / 2, abs=2)


def test_a_strip_is_as_high_as_its_sound() -> None:
    fading = TONE * np.linspace(0, 1, RATE)
    found = where(pixels(waveform_strip([(fading, RATE)], ["x"])), ACCENT)[20:60]
    heights = found.sum(axis=0)
    columns = np.flatnonzero(heights)
    for share in (0.25, 0.5, 1):
        column = columns[int(share * (len(columns) - 1))]
        assert heights[column - 3 : column + 1].max() == pytest.approx(34 * share, abs=3)


def test_loud_and_quiet_sounds_and_all_types_look_alike() -> None:
    shown = [
        where(pixels(waveform_strip([(samples, RATE)], [""])), ACCENT)[20:60].any(axis=0).sum()
        for samples in (TONE, TONE / 2, TONE.astype(np.float32), (TONE * 32767).astype(np.int16))
    ]
    assert max(shown) - min(shown) <= 15  # the note beside it differs in length


def test_silence_is_a_line() -> None:
    found = where(pixels(waveform_strip([(np.zeros(RATE), RATE)], ["x"])), ACCENT)
    assert found.any(axis=0).sum() > 500
    assert found.any(axis=1).sum() == 1


def test_odd_sounds_are_drawn_without_a_warning() -> None:
    odd = [
        np.zeros(0),
        np.zeros((0, 2)),
        np.zeros((5, 0)),
        np.array([0.5]),
        np.full(9, np.nan),
        np.array([32_768.0, -1e30, 1e-30]),
        np.zeros(3, np.float16),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pixels(waveform_strip([(sound, 1) for sound in odd], ["猫" * 200, "W" * 200, "", "x", "\udcff", "кошка", "."]))
        pixels(waveform_strip([(np.zeros(0), RATE)], ["nothing but this"]))


def test_no_recordings_are_a_picture_too() -> None:
    assert (~where(pixels(waveform_strip([], [], "Nothing")), CARD)).sum() > 500


def test_the_worst_input_stays_small_and_further_recordings_are_left_out() -> None:
    rng = np.random.default_rng(5)
    sounds = [(rng.normal(size=RATE), RATE) for _ in range(20)]
    captions = [f"noise {at} " * 30 for at in range(20)]
    png = waveform_strip(sounds, captions, "Noise")
    pixels(png)
    assert png == waveform_strip(sounds[:MOST_SOUNDS], captions[:MOST_SOUNDS], "Noise")


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=12), st.integers(1, 192_000))
def test_any_durations_fit(lengths: list[int], rate: int) -> None:
    pixels(waveform_strip([(np.zeros(length, np.int16), rate) for length in lengths], ["x"] * len(lengths)))


def test_arguments_that_cannot_be_drawn_are_errors() -> None:
    with pytest.raises(ValueError, match="1 recordings and 0 captions"):
        waveform_strip([(TONE, RATE)], [])
    for samples, rate in (
        (np.zeros(4, np.uint8), RATE),
        (np.zeros((2, 2, 2)), RATE),
        (TONE, 0),
        (TONE.astype(complex), RATE),
    ):
        with pytest.raises(ValueError, match="they are floats or signed integers"):
            waveform_strip([(samples, rate)], ["x"])
