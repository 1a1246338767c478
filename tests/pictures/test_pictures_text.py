import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfr_assets.pictures.text import fit, number, width_of
from tfr_assets.pictures.ticks import ticks


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(20, 400))
@example("W" * 10_000, 100)
@example("\ud800\udcff", 300)
def test_a_text_fits_its_room(text: str, width: int) -> None:
    drawn = fit(text, width)
    assert width_of(drawn) <= width
    assert drawn.isprintable()


@settings(deadline=None)
@given(st.text("abcdefghij é_/.0123456789", max_size=10))
def test_a_short_text_stays_but_for_its_blanks(text: str) -> None:
    assert fit(text, 500) == " ".join(text.split())


def test_a_long_text_loses_its_middle_and_no_more() -> None:
    name = "photographs/train/golden retriever/IMG_0001.jpg"
    drawn = fit(name, 150)
    head, tail = drawn.split("…")
    assert name.startswith(head)
    assert name.endswith(tail)
    assert abs(len(head) - len(tail)) <= 1
    kept = len(head) + len(tail) + 1
    assert width_of(name[: (kept + 1) // 2] + "…" + name[-(kept // 2) :]) > 150


def test_names_in_the_font_stay_and_others_stay_apart() -> None:
    for name in ("кошка", "σκύλος", "Schwarzwälder", "كلب", "כלב", "$x_1$ & <b>"):
        assert fit(name, 500) == name
    assert fit("猫", 500) == r"\u732b"
    assert fit("🦊 犬", 500) != fit("🦝 犬", 500)


def test_what_cannot_be_seen_is_not_drawn() -> None:
    assert fit("a\nb\tc\x00d\u202eevil\u200b", 500) == "a b c devil"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (5_300_000, "5,300,000"), (100, "100"), (1.8249, "1.82"), (0.0593, "0.0593")]
)
def test_numbers_as_people_read_them(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0, 1_600_000, ["0", "500,000", "1,000,000", "1,500,000"]),
        (0, 0.6, ["0.0", "0.2", "0.4", "0.6"]),
        (-4, 4, ["-4", "-2", "0", "2", "4"]),
        (2.7, 3.2, ["2.7", "2.8", "2.9", "3.0", "3.1", "3.2"]),
        (1_000_000_000, 1_000_000_004, ["1000000000", "1000000001", "1000000002", "1000000003", "1000000004"]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, labels: list[str]) -> None:
    assert list(ticks(low, high, 5).values()) == labels


@settings(deadline=None)
@given(st.floats(-1e30, 1e30), st.floats(1e-9, 1e30), st.integers(2, 10))
@example(0.0, 1e-99, 5)
@example(5.1, 4.3, 2)
@example(-4.299849299849306e16, 1.0, 2)
def test_ticks_lie_within_the_axis_and_tell_themselves_apart(low: float, span: float, most: int) -> None:
    high = low + max(span, abs(low) * 1e-6)
    found = ticks(low, high, most)
    assert 1 <= len(found) <= most + 1
    assert len(set(found.values())) == len(found)
    slack = (high - low) * 1e-6
    for value, label in found.items():
        assert low - slack <= value <= high + slack
        assert math.isclose(float(label.replace(",", "")), value, rel_tol=1e-6, abs_tol=slack)
