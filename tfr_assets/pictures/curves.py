"""Curves: what a measurement does over another."""

import math
from collections.abc import Mapping, Sequence
from itertools import islice, product

from tfr_assets.pictures.card import INNER, MARGIN, Card, empty, stroke
from tfr_assets.pictures.palette import EDGE, FAINT, SERIES
from tfr_assets.pictures.text import SIZE, SMALL_SIZE, fit, width_of
from tfr_assets.pictures.ticks import ticks

_STYLES = [(color, line) for line, color in product(("-", "--", ":"), SERIES)]
MOST_CURVES = len(_STYLES)
_HEIGHT = 280  # pixels, as all that follows: of what the curves are drawn in
_LINE, _STROKE, _GAP = 20, 22, 8  # height of a line of text, length of a legend's stroke, room beside texts
_WIDEST_NAME = 240
_MOST_DOTS = 40  # points of a curve, up to which each is marked
_HUGE = 1e99  # drawn like what is not finite: sums and differences of the others are
_GAP_IN_CURVE = (math.nan, math.nan)


def curves(series: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str, title: str = "") -> bytes:
    """Draws a curve a series, in the order given: the first 21 of them.

    y begins at 0 where that takes less than half of the height.

    Args:
        series: Points (x, y) by name, joined in their order. Where a number is not finite, the curve is interrupted.
        x_label: What x is, with its unit.
        y_label: What y is, with its unit.
        title: Stands above.

    Returns:
        A PNG of less than 100 kB.
    """
    drawn = {name: [_finite(*point) for point in curve] for name, curve in islice(series.items(), MOST_CURVES)}
    points = [point for curve in drawn.values() for point in curve if point is not _GAP_IN_CURVE]
    if not points:
        return empty(title, "nothing to draw")
    legend, legend_height = _legend([fit(name, _WIDEST_NAME) for name in drawn])
    above = legend_height + _LINE + _GAP
    more = f"{len(series) - MOST_CURVES:,} more are not shown" if len(series) > MOST_CURVES else ""
    card = Card(above + _HEIGHT + 2 * _LINE, title, more)
    low_x, high_x = _limits([x for x, _ in points])
    low_y, high_y = _limits([y for _, y in points])
    if 0 < low_y < high_y / 2:
        low_y = 0
    whole = all(float(x).is_integer() for x, _ in points)  # numbers of workers or files
    x_ticks, y_ticks = ticks(low_x, high_x, 6, 1 if whole else 0), ticks(low_y, high_y, 5)
    left = MARGIN + max(width_of(text, SMALL_SIZE) for text in y_ticks.values()) + _GAP
    width, upper, lower = MARGIN + INNER - left - _GAP, card.top + above, card.top + above + _HEIGHT
    for (name, x, y), (color, line) in zip(legend, _STYLES, strict=False):
        sample = card.axes(MARGIN + x, card.top + y, _STROKE, _LINE)
        stroke(sample, (0, 1), (0.5, 0.5), color, 2, line)
        card.write(MARGIN + x + _STROKE + _GAP, card.top + y + _LINE / 2, name)
    plot = card.axes(left, upper, width, _HEIGHT)
    plot.set(xlim=(low_x, high_x), ylim=(low_y, high_y))
    card.write(MARGIN, upper - _GAP - _LINE / 2, fit(y_label, INNER, SMALL_SIZE), FAINT, SMALL_SIZE)
    for tick, text in y_ticks.items():
        stroke(plot, (low_x, high_x), (tick, tick), EDGE, 0.8)
        at = lower - (tick - low_y) / (high_y - low_y) * _HEIGHT
        card.write(left - _GAP, at, text, FAINT, SMALL_SIZE, align="right")
    for tick, text in x_ticks.items():
        at = left + (tick - low_x) / (high_x - low_x) * width
        card.write(at, lower + _LINE / 2, text, FAINT, SMALL_SIZE, align="center")
    card.write(left + width, lower + 1.5 * _LINE, fit(x_label, width, SMALL_SIZE), FAINT, SMALL_SIZE, align="right")
    for curve, (color, line) in zip(drawn.values(), _STYLES, strict=False):
        marker = "o" if len(curve) <= _MOST_DOTS else ""
        stroke(plot, [x for x, _ in curve], [y for _, y in curve], color, 1.6, line, marker)
    return card.png()


def _finite(x: float, y: float) -> tuple[float, float]:
    return (x, y) if abs(x) < _HUGE and abs(y) < _HUGE else _GAP_IN_CURVE


def _legend(names: Sequence[str]) -> tuple[list[tuple[str, float, int]], int]:
    """Returns where each name stands within the legend, and the legend's height."""
    placed, x, y = [], 0.0, 0
    for name in names:
        width = _STROKE + _GAP + width_of(name, SIZE)
        if x + width > INNER:
            x, y = 0.0, y + _LINE
        placed.append((name, x, y))
        x += width + 2 * _GAP
    return placed, y + _LINE


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Returns where an axis begins and ends: at the outermost values, or around them if they are one."""
    low, high = min(values), max(values)
    largest = max(abs(low), abs(high))
    around = 0.0 if high - low > 1e-9 * largest else largest / 10
    return (low - around, high + around) if high - low + around > 1 / _HUGE else (low - 1, high + 1)
