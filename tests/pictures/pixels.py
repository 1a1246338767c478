"""Pictures, as Pillow sees them."""

import io
from collections.abc import Iterable

import numpy as np
from PIL import Image

from tfr_assets.pictures import LIMIT


def pixels(png: bytes) -> np.ndarray:
    """Returns a PNG's pixels, uint8 of shape (height, width, 3), once it is whole, opaque and small enough."""
    assert len(png) < LIMIT == 100_000
    with Image.open(io.BytesIO(png)) as checked:
        assert checked.format == "PNG"
        checked.verify()
    with Image.open(io.BytesIO(png)) as picture:
        assert not picture.has_transparency_data
        assert picture.width == 868
        return np.asarray(picture.convert("RGB"))


def rgb(color: str) -> tuple[int, ...]:
    """Returns the channels of `#rrggbb`."""
    return tuple(bytes.fromhex(color.removeprefix("#")))


def where(picture: np.ndarray, color: str) -> np.ndarray:
    """Returns which pixels have a colour exactly: bool of shape (height, width)."""
    return (picture == rgb(color)).all(axis=2)


def runs(picture: np.ndarray, color: str, least: int = 1) -> list[tuple[int, int]]:
    """Returns the lengths of bars of a colour, from the top down, each with the column it begins in."""
    found = where(picture, color)
    rows = [row for row in range(len(found)) if found[row].sum() >= least]
    tops = [row for row in rows if row - 1 not in rows]
    # a row in the middle of each: edges are blended
    return [(int(found[row + 5].sum()), int(found[row + 5].argmax())) for row in tops]


def encoded(image: Image.Image, format: str, **options: object) -> bytes:
    """Returns the bytes of an image's file."""
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def equal(pictures: Iterable[bytes]) -> bool:
    """Whether all are the same bytes."""
    return len(set(pictures)) == 1
