"""What an image's first and last bytes tell; nothing is decoded.

A file that is cut short is found by its end: JPEG's marker, PNG's last chunk, GIF's trailer, the sizes that BMP and
WebP state. PNG alone has checksums; they are checked, because Pillow decodes without looking at them. Bytes behind the
end are common (cameras append previews) and do no harm, except to BMP.
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import NamedTuple

from PIL import BmpImagePlugin, GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.ImageFile import ImageFile

from tfr_assets.sources.columnar import guess
from tfr_assets.sources.kinds import BadFileError

_ORIENTATION = 0x0112  # EXIF's tag
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_CHUNK = struct.Struct(">I4s")
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by color type
_BMP_HEADER = struct.Struct("<2sIHHIIiiHHI")
_OPENERS: Mapping[str, Callable[[BytesIO], ImageFile]] = {
    "jpeg": JpegImagePlugin.JpegImageFile,
    "png": PngImagePlugin.PngImageFile,
    "gif": GifImagePlugin.GifImageFile,
    "bmp": BmpImagePlugin.BmpImageFile,
    "webp": WebPImagePlugin.WebPImageFile,
}


class Header(NamedTuple):
    """What is known of an image.

    Attributes:
        format: `jpeg`, `png`, `gif`, `bmp` or `webp`.
        height: Pixels, as they are stored: an orientation is not applied.
        width: Pixels.
        channels: As `tf.io.decode_image` gives them with `channels=0`.
        orientation: EXIF's, from 1 (upright) to 8.
    """

    format: str
    height: int
    width: int
    channels: int
    orientation: int


def read_header(data: bytes, max_pixels: int) -> Header:
    """Returns what an image's header tells.

    Args:
        data: The file.
        max_pixels: Largest height × width.

    Raises:
        BadFileError: It is not an image, is cut short or too large, or is of a sort that TensorFlow does not read.
    """
    format_, image = open_image(data, max_pixels)
    width, height = image.size
    return Header(format_, height, width, _channels(format_, image, data), orientation_of(image))


def open_image(data: bytes, max_pixels: int) -> tuple[str, ImageFile]:
    """Returns the format, by content, and the image, which is not decoded yet.

    Raises:
        BadFileError: It is not an image, is cut short, or too large.
    """
    format_ = _format_of(data)
    stream = BytesIO(data)
    try:
        # not by Image.open, whose limit of pixels is the process's, not the source's
        image = _OPENERS[format_](stream)
    except (SyntaxError, OSError, ValueError) as error:
        raise BadFileError(f"is {_named(format_)}, but its header is damaged or cut short: {error!s:.200}") from error
    width, height = image.size
    if width * height > max_pixels:
        raise BadFileError(f"has {width:,} × {height:,} pixels, more than `max_pixels` ({max_pixels:,})")
    if format_ == "png":
        _check_chunks(data)
    elif not _has_end(format_, data, stream.tell()):
        raise BadFileError(f"is {_named(format_)} that is cut short: its end is missing")
    return format_, image


def orientation_of(image: ImageFile) -> int:
    """Returns the EXIF orientation, 1 where there is none."""
    try:
        found = image.getexif().get(_ORIENTATION, 1)
    except (SyntaxError, OSError, ValueError, struct.error):  # no viewer follows damaged EXIF either
        return 1
    return found if found in range(1, 9) else 1


def _format_of(data: bytes) -> str:
    if not data:
        raise BadFileError("is empty (0 bytes)")
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data.startswith(_PNG):
        return "png"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "webp"
    if data.startswith(b"BM"):
        return "bmp"
    begin = data[:16]
    raise BadFileError(
        f"is not a JPEG, PNG, GIF, BMP or WebP image: it begins with {begin!r}.{guess(begin)}".rstrip(".")
    )


def _named(format_: str) -> str:
    return {"jpeg": "a JPEG", "png": "a PNG", "gif": "a GIF", "bmp": "a BMP", "webp": "a WebP"}[format_]


def _check_chunks(data: bytes) -> None:
    """Holds the chunks of a PNG against their checksums; those that readers may pass over are passed over."""
    view = memoryview(data)
    at = len(_PNG)
    while len(data) >= at + 12:
        size, name = _PNG_CHUNK.unpack_from(data, at)
        end = at + 8 + size
        if len(data) < end + 4:
            break
        is_critical = name[:1].isupper()
        if is_critical and zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4], "big"):
            raise BadFileError(
                f"is a damaged PNG: the checksum of chunk {name.decode('ascii')} at byte {at:,} is wrong"
            )
        if name == b"IEND":
            return
        at = end + 4
    raise BadFileError("is a PNG that is cut short: its end is missing")


def _has_end(format_: str, data: bytes, image_data: int) -> bool:
    """Whether the end is there; `image_data` is where a JPEG's compressed data begin, behind previews of it."""
    match format_:
        case "jpeg":
            return data.rfind(b"\xff\xd9", image_data) >= 0
        case "gif":
            return data.rstrip(b"\0\r\n").endswith(b";")
        case "webp":
            return len(data) >= 8 + int.from_bytes(data[4:8], "little")
    return len(data) >= _bmp_size(data)


def _bmp_size(data: bytes) -> int:
    """Returns the size that an uncompressed BMP must have; 0 for others."""
    *_, start, header, width, height, _, bits, compression = _BMP_HEADER.unpack_from(
        data.ljust(_BMP_HEADER.size, b"\0")
    )
    if header < 40 or compression not in (0, 3):
        return 0
    return start + (width * bits + 31) // 32 * 4 * abs(height)


def _channels(format_: str, image: ImageFile, data: bytes) -> int:
    match format_:
        case "jpeg":
            return 1 if image.mode == "L" else 3
        case "png":
            kind = data[25]
            return _PNG_CHANNELS[kind] + (kind == 3 and "transparency" in image.info)
        case "bmp":
            return _bmp_channels(image, data)
        case "webp":
            if getattr(image, "is_animated", False):
                raise BadFileError(
                    "is an animated WebP, on which TensorFlow crashes; `format: png` takes its first frame"
                )
            return 4 if image.mode == "RGBA" else 3
    return 3


def _bmp_channels(image: ImageFile, data: bytes) -> int:
    *_, bits, _ = _BMP_HEADER.unpack_from(data)
    if len(data) != _bmp_size(data) or not (bits in (24, 32) or (bits == 8 and image.mode == "L")):
        raise BadFileError(
            "is a BMP that TensorFlow does not read rightly (compressed, with a palette, of an unusual number of bits, "
            "or with bytes behind its end); `format: png` converts it"
        )
    return int(bits) // 8
