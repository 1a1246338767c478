"""Text that can be drawn: characters that the font has, as many as there is room for."""

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

SIZE = 12  # pixels: names and values
TITLE_SIZE = 15
SMALL_SIZE = 11
_LONGEST = 400  # characters that are looked at: nothing longer fits anywhere


@cache
def font_path(bold: bool = False) -> str:
    """Returns the path of DejaVu Sans: it comes with matplotlib, and knows most alphabets."""
    from importlib.util import find_spec

    found = find_spec("matplotlib")  # importing it takes longer than drawing
    folder = found.submodule_search_locations[0] if found and found.submodule_search_locations else ""
    return f"{folder}/mpl-data/fonts/ttf/DejaVuSans{'-Bold' if bold else ''}.ttf"


@cache
def font(size: int, bold: bool = False) -> "FreeTypeFont":
    """Returns the font for Pillow.

    Args:
        size: In pixels.
        bold: Whether for titles.
    """
    from PIL import ImageFont

    return ImageFont.truetype(font_path(bold), size)


def width_of(text: str, size: int = SIZE, bold: bool = False) -> float:
    """Returns the width of a drawn text in pixels."""
    return font(size, bold).getlength(text)


def fit(text: str, width: float, size: int = SIZE, bold: bool = False) -> str:
    r"""Returns a text as it can be drawn in one line of a width: where it is too long, without its middle.

    Names of files and of classes tend to differ at their ends as much as at their beginnings. A character that the font
    lacks becomes its escape, such as `\u732b`, so that two names never look the same for lack of a font.

    Args:
        text: Any text.
        width: Of the room, in pixels.
        size: Of the font, in pixels.
        bold: Whether the font is bold.
    """
    cut = len(text) > _LONGEST
    parts = _drawable(text[: _LONGEST // 2] + text[-_LONGEST // 2 :] if cut else text)
    whole = "".join(parts)
    if not cut and width_of(whole, size, bold) <= width:
        return whole
    kept = bisect_right(range(len(parts)), width, key=lambda kept: width_of(_without_middle(parts, kept), size, bold))
    return _without_middle(parts, max(0, kept - 1))


def number(value: float) -> str:
    """Returns a measured number as people read it: in full from a hundred on, else three digits of it."""
    return f"{value:,.0f}" if 100 <= abs(value) < 1e15 else f"{value:.3g}"


def _without_middle(parts: Sequence[str], kept: int) -> str:
    head, tail = (kept + 1) // 2, kept // 2
    return f"{''.join(parts[:head]).rstrip()}…{''.join(parts[len(parts) - tail :]).lstrip()}"


def _drawable(text: str) -> list[str]:
    """Splits a text into characters, each as it can be drawn."""
    lines = "".join(" " if unicodedata.category(char) == "Cc" else char for char in text)
    composed = unicodedata.normalize("NFC", " ".join(lines.split()))
    # format characters have no look of their own, and could turn around what stands beside the text
    seen = [char for char in composed if unicodedata.category(char) != "Cf"]
    if composed.isascii():
        return seen
    known = _characters()
    return [char if ord(char) in known else char.encode("unicode_escape").decode() for char in seen]


@cache
def _characters() -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(font_path()).get_charmap()) & frozenset(FT2Font(font_path(bold=True)).get_charmap())
