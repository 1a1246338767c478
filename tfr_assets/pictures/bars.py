"""Measurements side by side: a bar each, with its spread."""

import math
from collections.abc import Sequence

from tfr_assets.pictures.card import INNER, MARGIN, Card, empty, stroke
from tfr_assets.pictures.palette import ACCENT, FAINT, INK, MUTED
from tfr_assets.pictures.text import SMALL_SIZE, fit, number, width_of

MOST_BARS = 40
_ROW, _BAR, _GAP = 28, 16, 12  # pixels: height of a row, of its bar, room beside texts
_REFERENCE = 22  # height of the line of text that names the reference
_WIDEST_NAME = 260


def bars(
    rows: Sequence[tuple[str, float, float, float]],
    unit: str,
    title: str,
    highlight: str | None = None,
    reference: tuple[str, float] | None = None,
) -> bytes:
    """Draws measurements, such as of readers or writers, in the order given: the first 40 of them.

    Args:
        rows: Name, median, low and high of each.
        unit: Of all of them.
        title: Stands above.
        highlight: Name of the row in the accent colour.
        reference: Name and value of what they are measured against: a dashed line. Each row tells its multiple of it.

    Returns:
        A PNG of less than 100 kB.

    Raises:
        ValueError: A number that is not finite or below zero, or a median outside its spread.
    """
    for name, median, low, high in rows:
        if not 0 <= low <= median <= high < math.inf:
            raise ValueError(f"{name}: a median of {median} between {low} and {high}: 0 <= low <= median <= high")
    if reference and not 0 < reference[1] < math.inf:
        raise ValueError(f"{reference[0]}: a reference of {reference[1]}: it must be more than 0")
    if not rows:
        return empty(title, "nothing was measured")
    more = f"; {len(rows) - MOST_BARS:,} more are not shown" if len(rows) > MOST_BARS else ""
    rows = rows[:MOST_BARS]
    above = _REFERENCE if reference else 0
    height = above + len(rows) * _ROW
    card = Card(height, title, f"{unit}: median, and from low to high{more}")
    names = [fit(name, _WIDEST_NAME) for name, *_ in rows]
    values = [number(median) for _, median, *_ in rows]
    multiples = [f"{number(median / reference[1])} ×" if reference else "" for _, median, *_ in rows]
    right = MARGIN + INNER - _widest(multiples)  # of the values
    left = MARGIN + _widest(names)
    width = right - _widest(values) - left
    largest = max([high for *_, high in rows] + [reference[1] if reference else 0]) or 1
    plot = card.axes(left, card.top, width, height)
    plot.set(xlim=(0, largest), ylim=(height, 0))
    for index, (name, median, low, high) in enumerate(rows):
        middle = above + (index + 0.5) * _ROW
        plot.barh(middle, median, _BAR, color=ACCENT if name == highlight else MUTED, linewidth=0)
        if low < high:
            stroke(plot, (low, high), (middle, middle), INK, 1.2, marker="|")
        card.write(left - _GAP, card.top + middle, names[index], align="right")
        card.write(right, card.top + middle, values[index], align="right")
        card.write(MARGIN + INNER, card.top + middle, multiples[index], FAINT, align="right")
    if reference:
        text = fit(f"{reference[0]} {number(reference[1])}", INNER, SMALL_SIZE)
        half = width_of(text, SMALL_SIZE) / 2
        at = left + reference[1] / largest * width
        middle = sorted((MARGIN + half, at, MARGIN + INNER - half))[1]  # where all of the text is on the card
        stroke(plot, [reference[1]] * 2, (above, height), FAINT, 1, "--")
        card.write(middle, card.top + above / 2, text, FAINT, SMALL_SIZE, align="center")
    return card.png()


def _widest(texts: Sequence[str]) -> float:
    """Returns the width of a column of texts with the room beside it; 0 if there are none."""
    widest = max(map(width_of, texts))
    return widest + _GAP if widest else 0
