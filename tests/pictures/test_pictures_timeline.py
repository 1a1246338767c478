from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pictures.pixels import equal, pixels, where
from tfr_assets.pictures import timeline
from tfr_assets.pictures.palette import SERIES

LANES = {"read": [(0.0, 0.1), (0.3, 0.5)], "train": [(0.1, 0.3), (0.5, 1.0)]}


def columns(picture: np.ndarray, color: str) -> list[tuple[int, int]]:
    """Returns where runs of a colour begin and end, left to right, whatever their height."""
    seen = where(picture, color).any(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], seen, [False]])))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def test_spans_stand_where_and_as_long_as_they_were() -> None:
    picture = pixels(timeline(LANES, "Run"))
    read, train = columns(picture, SERIES[0]), columns(picture, SERIES[1])
    assert (len(read), len(train)) == (2, 2)
    left, right = read[0][0], train[-1][1]
    for (start, stop), (begin, end) in zip(read + train, LANES["read"] + LANES["train"], strict=True):
        assert abs(start - (left + begin * (right - left))) <= 2
        assert abs(stop - (left + end * (right - left))) <= 2


def test_lanes_stand_in_their_order() -> None:
    picture = pixels(timeline(LANES, "Run"))
    rows = [np.flatnonzero(where(picture, color).any(axis=1)) for color in SERIES[:2]]
    assert rows[0].max() < rows[1].min()


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 6))
def test_what_overlaps_stands_one_below_the_other_up_to_four(together: int) -> None:
    picture = pixels(timeline({"map": [(0.1 * n, 1.0 + 0.1 * n) for n in range(together)]}, "Run"))
    rows = where(picture, SERIES[0])[:, 868 // 2]
    tracks = np.count_nonzero(np.diff(np.concatenate([[False], rows, [False]])) == 1) // 2
    assert tracks == min(together, 4)


def test_a_mark_is_a_line_through_all_lanes() -> None:
    with_mark, without = pixels(timeline(LANES, "Run", marks={"second epoch": 0.4})), pixels(timeline(LANES, "Run"))
    assert with_mark.shape[0] > without.shape[0]  # room for its name


def test_thousands_of_spans_fit() -> None:
    spans = [(n / 1000, n / 1000 + 0.0005) for n in range(5000)]
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    pixels(timeline({"read": spans, "猫" * 100: spans, "": []}, "T" * 500, "s" * 500))


@pytest.mark.parametrize("lanes", [{}, {"read": []}])
def test_nothing_happened(lanes: dict[str, list[tuple[float, float]]]) -> None:
    pixels(timeline(lanes, "Run"))


def test_one_moment_is_enough() -> None:
    pixels(timeline({"read": [(5.0, 5.0)]}, "Run"))


def test_a_span_cannot_end_before_it_starts() -> None:
    with pytest.raises(ValueError, match=r"ends before it starts: \(2\.0, 1\.0\)"):
        timeline({"read": [(2.0, 1.0)]}, "Run")


def test_the_same_spans_are_the_same_picture() -> None:
    assert equal([timeline(LANES, "Run", marks={"x": 0.2})] * 2)
