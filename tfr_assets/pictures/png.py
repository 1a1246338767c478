"""Pictures → PNG bytes that are small enough for an event log."""

import base64
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

LIMIT = 100_000  # bytes; a picture is stored with every event that shows it
PHOTOGRAPHS = (None, 256, 128, 64)  # numbers of colours to try; None: all
CHARTS = (256, 64)  # have few colours and their blends: with 256 nobody sees a difference, in a third of the bytes


def encode(pictures: "Iterable[Image]", colours: Sequence[int | None]) -> bytes:
    """Returns the first of `pictures` that fits, with the first number of colours with which it does.

    Args:
        pictures: RGB versions of one picture, the best first, down to one that fits whatever is in it.
        colours: `PHOTOGRAPHS` or `CHARTS`.

    Raises:
        ValueError: None of them fits.
    """
    from PIL import Image

    # among many colours nobody sees which ones were taken; the other method takes a hundred times as long
    method = Image.Quantize.FASTOCTREE if colours is PHOTOGRAPHS else Image.Quantize.MEDIANCUT
    for picture in pictures:
        for number in colours:
            reduced = picture if number is None else picture.quantize(number, method, dither=Image.Dither.NONE)
            file = io.BytesIO()
            reduced.save(file, "PNG", optimize=True)
            if file.tell() < LIMIT:
                return file.getvalue()
    raise ValueError(f"no version of the picture fits into {LIMIT:,} bytes")


def shrinking(picture: "Image") -> "Iterator[Image]":
    """Yields `picture`, and then ever smaller versions of it."""
    while True:
        yield picture
        picture = picture.reduce(2)


def as_markdown(png: bytes, alt: str) -> str:
    """Returns markdown that shows a picture without any file.

    Args:
        png: The picture.
        alt: What is seen where it cannot be shown: one line.
    """
    text = " ".join(alt.split()).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return f"![{text}](data:image/png;base64,{base64.b64encode(png).decode()})"
