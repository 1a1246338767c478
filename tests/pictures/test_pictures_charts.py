import math
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib import style

from tests.pictures.pixels import equal, pixels, runs, where
from tfr_assets.pictures import bars, class_balance, curves
from tfr_assets.pictures.palette import ACCENT, CARD, EDGE, FAINT, INK, MUTED, SERIES

NASTY = ["W" * 200, "кошка " * 40, "猫犬鳥" * 70, "كلب", "$\\frac{1}{$", "\udcff\x00\n", "", " "]
READERS = [
    ("numpy_batches", 2_200_000.0, 2_000_000.0, 2_300_000.0),
    ("batch_then_parse", 645_000.0, 600_000.0, 690_000.0),
    ("parallel_reads", 67_000.0, 67_000.0, 67_000.0),
]
LOSS = {"train": [(x, math.exp(-x / 9)) for x in range(50)], "validation": [(x, 1 / (x + 1)) for x in range(0, 50, 7)]}


def test_a_classes_bar_is_as_long_as_its_count() -> None:
    counts = {"cat": 120, "dog": 60, "none": 0, "bird": 30, "fox": 1}
    drawn = runs(pixels(class_balance(counts, "Pets")), ACCENT)
    longest = drawn[0][0]
    assert longest > 600
    for (length, _), count in zip(drawn, [120, 60, 30, 1], strict=True):
        assert abs(length - longest * count / 120) <= 1
    assert len({start for _, start in drawn}) == 1


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 10**15), min_size=1, max_size=40))
def test_classes_stand_in_the_order_given(counts: list[int]) -> None:
    drawn = runs(pixels(class_balance({str(at): count for at, count in enumerate(counts)}, "x")), ACCENT, least=2)
    seen = [count for count in counts if count / max(counts) > 0.01]
    assert len(drawn) >= len(seen)
    longest = max(length for length, _ in drawn)
    lengths = [round(count / max(counts) * longest) for count in seen]
    large = [length for length, _ in drawn if length > longest * 0.01 + 3]
    assert all(any(abs(length - other) <= 1 for other in lengths) for length in large)


def test_of_a_thousand_classes_the_largest_and_the_smallest_are_drawn() -> None:
    rng = np.random.default_rng(3)
    sizes = [*range(1000, 1020), *[500] * 970, *range(100, 110)]
    counts = {f"class {at}": int(sizes[at]) for at in rng.permutation(1000)}
    drawn = [length for length, _ in runs(pixels(class_balance(counts, "Many")), ACCENT)]
    assert len(drawn) == 30
    assert drawn == sorted(drawn, reverse=True)
    for length, size in zip(drawn, [*range(1019, 999, -1), *range(109, 99, -1)], strict=True):
        assert abs(length - drawn[0] * size / 1019) <= 1


def test_forty_classes_are_all_drawn() -> None:
    assert len(runs(pixels(class_balance({str(at): 10 for at in range(40)}, "x")), ACCENT)) == 40


def test_a_measurements_bar_is_as_long_as_its_median() -> None:
    picture = pixels(bars([*READERS[1:], READERS[0]], "records/s", "Readers"))
    drawn = [length for length, _ in runs(picture[60:], MUTED, least=4)]
    # whiskers cover a part of the middle, so that edges of a bar are compared
    found = where(picture, MUTED)
    ends = [int(np.flatnonzero(found[row]).max()) for row in range(len(found)) if found[row].sum() >= 4]
    start = int(np.flatnonzero(found.any(axis=0)).min())
    assert len(drawn) >= 3
    assert max(ends) - start == pytest.approx((min(ends) - start) * 2_200_000 / 67_000, rel=0.1)
    whiskers = np.flatnonzero(where(picture, INK)[:, max(ends) + 2 : max(ends) + 30].any(axis=1))
    assert whiskers.size > 0


def test_the_highlight_alone_has_the_accent_colour() -> None:
    plain, lit = (pixels(bars(READERS, "records/s", "x", highlight)) for highlight in (None, "batch_then_parse"))
    assert not where(plain, ACCENT).any()
    assert len(runs(lit, ACCENT, least=100)) >= 1
    assert where(lit, MUTED).sum() + where(lit, ACCENT).sum() == pytest.approx(where(plain, MUTED).sum(), rel=0.01)


def test_the_reference_stands_where_its_value_is() -> None:
    rows = [("half", 50.0, 50.0, 50.0), ("whole", 100.0, 100.0, 100.0)]
    picture = pixels(bars(rows, "MB/s", "x", "whole", reference=("plain write", 75.0)))
    accent = np.flatnonzero(where(picture, ACCENT).any(axis=0))
    dashes = where(picture, FAINT).sum(axis=0)
    line = int(accent.min() + 0.75 * (accent.max() + 1 - accent.min()))
    assert dashes[line - 1 : line + 2].sum() > 20


def test_a_reference_beyond_all_bars_fits() -> None:
    picture = pixels(bars(READERS, "records/s", "x", reference=("a reference with a long name " * 9, 9e9)))
    assert where(picture[1:-1, 1:19], CARD).all()
    assert where(picture[1:-1, -19:-1], CARD).all()


def test_curves_go_through_their_points() -> None:
    picture = pixels(curves({"line": [(0, 0), (100, 50)]}, "x", "y", ""))
    area = where(picture[70:], SERIES[0])
    rows, columns = np.nonzero(area)
    slope, offset = np.polyfit(columns, rows, 1)
    assert np.abs(rows - slope * columns - offset).max() < 6
    assert slope < 0
    assert columns.max() - columns.min() > 700
    assert rows.max() - rows.min() == pytest.approx(280, abs=10)


def test_each_curve_has_its_colour_and_legend() -> None:
    series = {f"curve {at}": [(0.0, float(at)), (1.0, at + 1.0)] for at in range(5)}
    picture = pixels(curves(series, "x", "y", "Title"))
    for color in SERIES[:5]:
        assert where(picture[45:70], color).sum() > 20
        assert where(picture[110:], color).sum() > 200


def test_a_curve_is_interrupted_where_it_is_not_a_number() -> None:
    points = [(float(x), 1.0) for x in range(100)]
    points[50] = (50.0, math.nan)
    points[51] = (51.0, math.inf)
    found = where(pixels(curves({"loss": points, "around": [(0, 0), (99, 3)]}, "x", "y")), SERIES[0])
    gaps = np.diff(np.flatnonzero(found[found.sum(axis=1).argmax()]))
    assert (gaps > 15).sum() == 1  # and a narrow one where the other curve crosses


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=20), st.lists(st.tuples(st.floats(width=64), st.floats(width=64)), max_size=5), max_size=4
    )
)
@example({"constant": [(1, 5), (2, 5)]})
@example({"zero": [(0, 0)]})
@example({"tiny": [(0, 1e-320), (1e-310, 0)]})
@example({"huge": [(1e98, -1e98), (-1e98, 1e98)], "no points": []})
@example({"close": [(1e15, 1), (1e15 + 1, 1 + 1e-15)]})
def test_all_numbers_can_be_drawn(series: dict[str, list[tuple[float, float]]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pixels(curves(series, "x", "y", "t"))


def test_names_of_any_length_and_script_stay_on_the_card() -> None:
    drawn = [
        class_balance({name: at for at, name in enumerate(NASTY)}, NASTY[0]),
        bars([(name, at, at, at) for at, name in enumerate(NASTY)], NASTY[1], NASTY[2], NASTY[0], (NASTY[1], 3)),
        curves({name: [(0, at), (1, at)] for at, name in enumerate(NASTY)}, NASTY[0], NASTY[1], NASTY[2]),
    ]
    for png in drawn:
        picture = pixels(png)
        assert where(picture[:, [0, -1]], EDGE).all()
        assert where(picture[1:-1, 1:17], CARD).all()
        assert where(picture[1:-1, -17:-1], CARD).all()


@pytest.mark.parametrize(
    "png",
    [
        class_balance({}, "x"),
        class_balance({"none": 0}, "x"),
        bars([], "records/s", "x", reference=("plain", 1.0)),
        bars([("nothing", 0.0, 0.0, 0.0)], "records/s", "x"),
        curves({}, "x", "y"),
        curves({"no points": [], "no numbers": [(math.nan, 1), (1, math.inf)]}, "x", "y", "t"),
    ],
)
def test_nothing_to_show_is_a_picture_too(png: bytes) -> None:
    assert (~where(pixels(png), CARD)).sum() > 500


def test_the_worst_input_stays_small() -> None:
    rng = np.random.default_rng(4)
    noise = {f"noise {at}": list(enumerate(rng.normal(size=2000))) for at in range(30)}
    pixels(curves(noise, "step", "loss", "Noise"))
    pixels(bars([(f"reader {at}" * 9, at, at / 2, at * 2) for at in range(1000)], "records/s", "Many"))
    pixels(class_balance({f"{at}" * 50: at for at in range(1000)}, "Many"))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("a", 1.0, 2.0, 3.0), "a: a median of 1.0 between 2.0 and 3.0"),
        (("a", math.nan, 0.0, 1.0), "a: a median of nan"),
        (("a", 1.0, 0.0, math.inf), "inf"),
        (("a", -1.0, -1.0, 0.0), "0 <= low <= median <= high"),
    ],
)
def test_measurements_that_cannot_be_are_errors(row: tuple[str, float, float, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        bars([row], "records/s", "x")


def test_other_impossible_numbers_are_errors() -> None:
    with pytest.raises(ValueError, match=r"plain write: a reference of 0.0: it must be more than 0"):
        bars(READERS, "records/s", "x", reference=("plain write", 0.0))
    with pytest.raises(ValueError, match="a count of -3"):
        class_balance({"a": 2, "b": -3}, "x")


def draw_all() -> bytes:
    return (
        class_balance({"a": 3, "b": 2}, "x")
        + bars(READERS, "records/s", "x", READERS[0][0], ("plain", 9e5))
        + curves(LOSS, "step", "loss", "x")
    )


def test_threads_and_repetition_give_equal_bytes() -> None:
    with ThreadPoolExecutor(4) as threads:
        assert equal(future.result() for future in [threads.submit(draw_all) for _ in range(8)])


def test_a_users_settings_of_matplotlib_change_nothing() -> None:
    plain = draw_all()
    with matplotlib.rc_context():
        style.use("dark_background")
        matplotlib.rcParams.update(
            {
                "font.size": 30,
                "figure.autolayout": True,
                "figure.dpi": 33,
                "axes.grid": True,
                "lines.marker": "x",
                "lines.linestyle": ":",
                "patch.force_edgecolor": True,
            }
        )
        assert draw_all() == plain


def test_pyplot_is_left_alone() -> None:
    code = "import sys; from tfr_assets.pictures import bars; bars([('a', 1, 1, 1)], 's', 'x'); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "matplotlib.figure" in modules
    assert "matplotlib.pyplot" not in modules
