"""Images, encoded or not → small RGB images to look at."""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP")  # Pillow knows more, and starts Ghostscript for one of them
_MOST_PIXELS = 25_000_000  # decoded at once, four bytes each
BROKEN, TOO_LARGE = "broken", "too large"
_SCALED_WELL = ("L", "LA", "RGB", "RGBA")


class NoThumbnailError(Exception):
    """An image that is not drawn; its text is `BROKEN` or `TOO_LARGE`."""


def thumbnail(image: "bytes | np.ndarray", side: int) -> "Image":
    """Returns an image as RGB, upright, on white, and scaled down to fit a square. Smaller ones keep their size.

    Args:
        image: JPEG, PNG, GIF, BMP or WebP, of an animation the first frame; or a uint8 array of shape (height, width)
            or (height, width, c), with c of 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA).
        side: Of the square, in pixels.

    Raises:
        NoThumbnailError: It cannot be decoded, or would take too much memory.
        ValueError: An array of another shape or type.
    """
    import numpy as np
    from PIL import Image

    if isinstance(image, np.ndarray):
        return _small(_from_array(image), side)
    try:
        return _decode(image, side)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise NoThumbnailError(TOO_LARGE) from error
    except Exception as error:  # decoders raise whatever damaged bytes lead them to
        raise NoThumbnailError(BROKEN) from error


def scaled(image: "Image", side: int) -> "Image":
    """Returns an image as large as it looks well in a square: up by whole factors to crisp pixels, or down.

    Args:
        image: RGB.
        side: Of the square, in pixels.
    """
    from PIL import Image

    longest = max(image.size)
    if longest <= side // 2:
        factor = side // longest
        return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    small = image.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return small


def _decode(encoded: bytes, side: int) -> "Image":
    from PIL import Image

    with Image.open(io.BytesIO(encoded), formats=_FORMATS) as image:
        image.draft("RGB", (2 * side, 2 * side))  # as little of a JPEG is decoded as is enough
        if image.width * image.height > _MOST_PIXELS:
            raise Image.DecompressionBombError
        return _small(image, side)


def _from_array(pixels: "np.ndarray") -> "Image":
    from PIL import Image

    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    if pixels.dtype != "uint8" or pixels.ndim not in (2, 3) or not 1 <= channels <= 4 or not pixels.size:
        raise ValueError(
            f"an array of {pixels.dtype} and shape {pixels.shape}: pixels are uint8 of shape (height, width) or "
            "(height, width, 1 to 4 channels)"
        )
    return Image.fromarray(pixels[:, :, 0] if pixels.ndim == 3 and channels == 1 else pixels)


def _small(image: "Image", side: int) -> "Image":
    from PIL import Image, ImageOps

    if image.mode.startswith("I"):  # 16 bits a pixel, which Pillow would cut off at 255
        import numpy as np

        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode not in _SCALED_WELL or "transparency" in image.info:
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    image = ImageOps.exif_transpose(image)
    if not image.has_transparency_data:
        return image.convert("RGB")
    white = Image.new("RGBA", image.size, "white")
    white.alpha_composite(image.convert("RGBA"))
    return white.convert("RGB")
