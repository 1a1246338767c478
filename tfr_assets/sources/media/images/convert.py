"""Images as other images or as pixels: upright, resized, encoded again.

Values of 16 bits become their upper 8, as `tf.io.decode_image` makes them. CMYK becomes RGB by Pillow's formula. Of an
animation, the first frame is taken. Transparency is kept in PNG, and left out (not blended) in JPEG and pixels.
"""

from io import BytesIO

import numpy as np
from PIL import Image

from tfr_assets.sources.media.images.header import open_image, orientation_of, pillow_errors
from tfr_assets.sources.model.image_options import Conversion

_TURNS = {  # what makes an image upright, by EXIF's orientation
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_FIRST_SIDEWAYS = 5  # of these, from here on height and width change places
_GAP = 2  # a JPEG is decoded at a fraction of its size, but at no less than this many times the wanted one


def look(data: bytes, conversion: Conversion, max_pixels: int) -> tuple[str, int, int, int]:
    """Returns format, height, width and channels that an image will have after the conversion.

    All of it is decoded, so that damage is found, but not turned or resized: `decode` does that.

    Raises:
        BadFileError: It cannot be decoded.
    """
    format_, image, orientation = _loaded(data, conversion, max_pixels)
    plain = _plain(image.crop((0, 0, 1, 1)), format_, conversion.channels)
    height, width = conversion.size or (image.size if orientation >= _FIRST_SIDEWAYS else image.size[::-1])
    return format_, height, width, len(plain.getbands())


def decode(data: bytes, conversion: Conversion, max_pixels: int) -> tuple[str, Image.Image]:
    """Returns an image's format after the conversion (`jpeg`, `png` or `raw`), and the converted image.

    Its mode is L, RGB, or for PNG also LA or RGBA.

    Raises:
        BadFileError: It cannot be decoded.
    """
    format_, image, orientation = _loaded(data, conversion, max_pixels)
    upright = image.transpose(_TURNS[orientation]) if orientation in _TURNS else image
    plain = _plain(upright, format_, conversion.channels)
    if conversion.size and plain.size != conversion.size[::-1]:
        plain = plain.resize(conversion.size[::-1], Image.Resampling.BICUBIC)
    return format_, plain


def _loaded(data: bytes, conversion: Conversion, max_pixels: int) -> tuple[str, Image.Image, int]:
    """Returns an image's format after the conversion, the decoded image, and how it is to be turned."""
    found, image = open_image(data, max_pixels)
    orientation = orientation_of(image)
    with pillow_errors("cannot be decoded"):
        if conversion.size and found == "jpeg":
            height, width = conversion.size[::-1] if orientation >= _FIRST_SIDEWAYS else conversion.size
            image.draft(None, (width * _GAP, height * _GAP))
        image.load()
    return conversion.format or ("jpeg" if found == "jpeg" else "png"), image, orientation


def encode(format_: str, image: Image.Image, quality: int) -> bytes:
    """Returns the bytes of a JPEG (without metadata) or PNG.

    Args:
        format_: `jpeg` or `png`.
        image: As `decode` gives it.
        quality: Of a JPEG.
    """
    stream = BytesIO()
    if format_ == "jpeg":
        image.save(stream, "JPEG", quality=quality)
    else:
        image.save(stream, "PNG")
    return stream.getvalue()


def pixels(image: Image.Image) -> np.ndarray:
    """Returns a decoded image's pixels: uint8 of shape (height, width, channels)."""
    values = np.asarray(image, np.uint8)
    return values.reshape(*values.shape[:2], -1)


def _plain(image: Image.Image, format_: str, channels: int) -> Image.Image:
    """Returns an image of the mode that its format has, without metadata."""
    if image.mode.startswith("I"):
        image = Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    if format_ == "raw":
        mode = "L" if channels == 1 else "RGB"
    else:
        is_gray = image.mode in ("1", "L", "LA")
        has_alpha = format_ == "png" and image.has_transparency_data
        mode = ("LA" if has_alpha else "L") if is_gray else ("RGBA" if has_alpha else "RGB")
    if image.mode != mode:
        image = image.convert(mode)
    image.info = {}
    return image
