"""Timelines: what happens when, in lanes one below the other."""

from collections.abc import Mapping, Sequence

from tfr_assets.pictures.card import INNER, MARGIN, Card, empty
from tfr_assets.pictures.palette import EDGE, FAINT, SERIES
from tfr_assets.pictures.text import SMALL_SIZE, fit, width_of
from tfr_assets.pictures.ticks import ticks

MOST_TRACKS = 4
_TRACK, _BETWEEN, _GAP, _LINE = 14, 10, 12, 20  # pixels: a track, room between lanes, beside texts, a line of text
_WIDEST_NAME = 160

Span = tuple[float, float]


def timeline(
    lanes: Mapping[str, Sequence[Span]],
    title: str,
    subtitle: str = "",
    marks: Mapping[str, float] | None = None,
    seconds: float = 0,
) -> bytes:
    """Draws spans of time, a lane for each kind. Those of a lane that overlap stand one below the other.

    Args:
        lanes: Spans (start, end) in seconds, by name of the lane, in the order from the top. What overlaps more than
            four others shares the last track.
        title: Stands above.
        subtitle: Below the title.
        marks: Moments in seconds, by what happens there: a vertical line each.
        seconds: Time that the axis has at least, so that several pictures can have one scale.

    Returns:
        A PNG of less than 100 kB.

    Raises:
        ValueError: A span ends before it starts.
    """
    if wrong := [span for spans in lanes.values() for span in spans if not span[0] <= span[1]]:
        raise ValueError(f"a span ends before it starts: {wrong[0]}")
    spans = [span for of_lane in lanes.values() for span in of_lane]
    if not spans:
        return empty(title, "nothing happened")
    tracks = {name: _tracks(of_lane) for name, of_lane in lanes.items()}
    above = _LINE if marks else 0
    heights = [max(1, len(each)) * _TRACK for each in tracks.values()]
    height = above + sum(heights) + _BETWEEN * len(heights)
    card = Card(height + _LINE, title, subtitle)
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    width_seconds = max(last - first, seconds) or 1e-9
    names = [fit(name, _WIDEST_NAME) for name in lanes]
    left = MARGIN + max(map(width_of, names)) + _GAP
    width = MARGIN + INNER - left
    plot = card.axes(left, card.top, width, height)
    plot.set(xlim=(0, width_seconds * 1e3), ylim=(height, 0))
    axis = ticks(0, width_seconds * 1e3, 8)
    plot.vlines(list(axis), above, height, EDGE, linewidth=0.8, zorder=0)
    for tick, text in axis.items():
        half = width_of(text, SMALL_SIZE) / 2
        at = min(left + tick / (width_seconds * 1e3) * width, MARGIN + INNER - half)
        card.write(at, card.top + height + _LINE / 2, text, FAINT, SMALL_SIZE, align="center")
    card.write(MARGIN, card.top + height + _LINE / 2, "ms", FAINT, SMALL_SIZE)
    top = above + _BETWEEN / 2
    for number, (name, of_lane) in enumerate(tracks.items()):
        card.write(left - _GAP, card.top + top + heights[number] / 2, fit(name, _WIDEST_NAME), align="right")
        for track in of_lane:
            bars = [((start - first) * 1e3, (end - start) * 1e3) for start, end in track]
            color = SERIES[number % len(SERIES)]
            # a thin edge keeps what is shorter than a pixel in sight
            plot.broken_barh(bars, (top, _TRACK - 2), facecolors=color, edgecolors=color, linewidth=0.3, zorder=2)
            top += _TRACK
        top += _BETWEEN + (0 if of_lane else _TRACK)
    for text, at in (marks or {}).items():
        plot.vlines([(at - first) * 1e3], 0, height, FAINT, linewidth=1, linestyles="--")
        x = min(left + (at - first) / width_seconds * width + 4, MARGIN + INNER - width_of(text, SMALL_SIZE))
        card.write(x, card.top + above / 2, text, FAINT, SMALL_SIZE)
    return card.png()


def _tracks(spans: Sequence[Span]) -> list[list[Span]]:
    """Deals spans to as few tracks as keep them apart, four at most."""
    tracks: list[list[Span]] = []
    for span in sorted(spans):
        free = next((track for track in tracks if track[-1][1] <= span[0]), None)
        if free is not None:
            free.append(span)
        elif len(tracks) < MOST_TRACKS:
            tracks.append([span])
        else:
            tracks[-1].append(span)
    return tracks
