"""Contact sheets: a look at the images of a dataset."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from tfr_assets.pictures.palette import CARD, EDGE, FAINT, INK
from tfr_assets.pictures.png import PHOTOGRAPHS, encode
from tfr_assets.pictures.text import SMALL_SIZE, TITLE_SIZE, fit, font
from tfr_assets.pictures.thumbnail import BROKEN, NoThumbnailError, scaled, thumbnail

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

MOST_THUMBNAILS = 24
_COLUMNS = 6
_SIDES = (128, 112, 96, 80, 64)  # of a thumbnail's room: the first that makes the PNG small enough
_CELL, _GAP, _MARGIN, _CAPTION, _TITLE = 128, 12, 20, 20, 30  # pixels, as the sides


def contact_sheet(images: "Sequence[bytes | np.ndarray]", captions: Sequence[str], title: str = "") -> bytes:
    """Draws thumbnails of images, each with a caption: the first 24 of them.

    Small images are scaled up to crisp pixels, large ones down; EXIF orientation is respected; what is transparent is
    white; of an animation the first frame is drawn. A box crossed out stands for an image that cannot be decoded, an
    empty one for an image that would take too much memory.

    Args:
        images: Encoded as JPEG, PNG, GIF, BMP or WebP, or uint8 arrays of shape (height, width) or (height, width, c),
            with c of 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA).
        captions: One an image. Where there is no room for all of it, its middle is left out.
        title: Stands above.

    Returns:
        A PNG of less than 100 kB. For photographs it has fewer colours, and smaller thumbnails if need be.

    Raises:
        ValueError: Not as many captions as images, or an array of another shape or type.
    """
    if len(images) != len(captions):
        raise ValueError(f"{len(images):,} images and {len(captions):,} captions: give each image one")
    tiles = [_tile(image) for image in images[:MOST_THUMBNAILS]]
    return encode((_draw(tiles, captions, title, side) for side in _SIDES), PHOTOGRAPHS)


def _tile(image: "bytes | np.ndarray") -> "Image | NoThumbnailError":
    try:
        return thumbnail(image, _SIDES[0])
    except NoThumbnailError as why:
        return why


def _draw(tiles: "Sequence[Image | NoThumbnailError]", captions: Sequence[str], title: str, side: int) -> "Image":
    from PIL import Image, ImageDraw

    images = [_box(side, str(tile)) if isinstance(tile, NoThumbnailError) else scaled(tile, side) for tile in tiles]
    heights = [max(image.height for image in images[row : row + _COLUMNS]) for row in range(0, len(images), _COLUMNS)]
    top = _MARGIN + (_TITLE if title else 0)
    tops = list(accumulate((height + _CAPTION + _GAP for height in heights), initial=top))
    width = 2 * _MARGIN + _COLUMNS * (_CELL + _GAP) - _GAP
    sheet = Image.new("RGB", (width, (tops[-1] - _GAP if images else top + SMALL_SIZE) + _MARGIN), CARD)
    draw = ImageDraw.Draw(sheet)
    draw.rectangle((0, 0, width - 1, sheet.height - 1), outline=EDGE)
    line = fit(title, width - 2 * _MARGIN, TITLE_SIZE, bold=True)
    draw.text((_MARGIN, _MARGIN), line, INK, font(TITLE_SIZE, bold=True), anchor="lt")
    if not images:
        draw.text((_MARGIN, top), "no images", FAINT, font(SMALL_SIZE), anchor="lt")
    for index, image in enumerate(images):
        row, column = divmod(index, _COLUMNS)
        x, bottom = _MARGIN + column * (_CELL + _GAP), tops[row] + heights[row]
        sheet.paste(image, (x, bottom - image.height))
        draw.rectangle((x - 1, bottom - image.height - 1, x + image.width, bottom), outline=EDGE)
        draw.text((x, bottom + 5), fit(captions[index], _CELL, SMALL_SIZE), INK, font(SMALL_SIZE), anchor="la")
    return sheet


def _box(side: int, why: str) -> "Image":
    from PIL import Image, ImageDraw

    box = Image.new("RGB", (side, side), CARD)
    draw = ImageDraw.Draw(box)
    if why == BROKEN:
        draw.line((0, 0, side, side), FAINT)
        draw.line((0, side, side, 0), FAINT)
    middle = (side / 2, side / 2)
    draw.rectangle(draw.textbbox(middle, f" {why} ", font(SMALL_SIZE), anchor="mm"), CARD)
    draw.text(middle, why, FAINT, font(SMALL_SIZE), anchor="mm")
    return box
