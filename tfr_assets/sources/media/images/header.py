"""What an image's first and last bytes show; nothing is decoded but the first frame of a GIF.

A file that is cut short is found by its end: JPEG's marker, PNG's last chunk, GIF's trailer, the sizes that BMP and
WebP state. PNG alone has checksums; they are checked, because Pillow decodes without looking at them. Bytes behind the
end are common (cameras append previews) and do no harm, except to BMP.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple

from PIL import BmpImagePlugin, GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.ImageFile import ImageFile

from tfr_assets.sources.media.images.gif import first_frame
from tfr_assets.sources.model.kinds import BadFileError
from tfr_assets.sources.tables.arrow_files import guess

_ORIENTATION = 0x0112  # EXIF's tag
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_CHUNK = struct.Struct(">I4s")
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by color type
_PNG_PALETTE = 3  # color type
_PNG_KNOWN = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
_JPEG_CODED = {0xC3: "lossless", **dict.fromkeys((0xC5, 0xC6, 0xC7), "hierarchical"), 0xCB: "lossless"}
_JPEG_CODED |= dict.fromkeys((0xCD, 0xCE, 0xCF), "hierarchical")
_JPEG_SCAN = 0xDA
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
    """Returns what an image's header says.

    Args:
        data: The file.
        max_pixels: Largest height × width.

    Raises:
        BadFileError: It is not an image, is cut short or too large, or is of a sort that TensorFlow does not read.
    """
    format_, image = open_image(data, max_pixels)
    width, height = image.size
    if format_ == "gif":
        frame = first_frame(data, max_pixels)
        width, height = frame.width, frame.height
    elif format_ == "jpeg":
        _check_coding(data)
    return Header(format_, height, width, _channels(format_, image, data), orientation_of(image))


def open_image(data: bytes, max_pixels: int) -> tuple[str, ImageFile]:
    """Returns the format, by content, and the image, which is not decoded yet.

    Raises:
        BadFileError: It is not an image, is cut short, or too large.
    """
    format_ = _format_of(data)
    stream = BytesIO(data)
    with pillow_errors(f"is {_named(format_)}, but its header is damaged or cut short"):
        # not by Image.open, whose limit of pixels is the process's, not the source's
        image = _OPENERS[format_](stream)
    width, height = image.size
    if width * height > max_pixels:
        raise BadFileError(f"has {width:,} × {height:,} pixels, more than `max_pixels` ({max_pixels:,})")
    if format_ == "png":
        _check_chunks(data)
    elif not _has_end(format_, data, stream.tell()):
        raise BadFileError(f"is {_named(format_)} that is cut short: its end is missing")
    return format_, image


@contextmanager
def pillow_errors(what: str) -> Iterator[None]:
    """Turns whatever Pillow raises for an image into a BadFileError that begins with `what`.

    Its plug-ins raise SyntaxError, OSError, ValueError, EOFError, struct.error, IndexError, DecompressionBombError, and
    others: one image must not end a listing that skips bad files.
    """
    try:
        yield
    except (BadFileError, MemoryError):
        raise
    except Exception as error:
        raise BadFileError(f"{what}: {str(error) or type(error).__name__:.200}") from error


def orientation_of(image: ImageFile) -> int:
    """Returns the EXIF orientation, 1 where there is none."""
    try:
        with pillow_errors("has damaged EXIF data"):
            found = image.getexif().get(_ORIENTATION, 1)
    except BadFileError:  # no viewer follows damaged EXIF either
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
    """Checks the chunks of a PNG against their checksums and order; those that readers may ignore are ignored."""
    view = memoryview(data)
    at = len(_PNG)
    chunks: list[bytes] = []
    while len(data) >= at + 12:
        size, name = _PNG_CHUNK.unpack_from(data, at)
        end = at + 8 + size
        if len(data) < end + 4:
            break
        if name[:1].isupper():
            place = f"chunk {name.decode('ascii', 'backslashreplace')} at byte {at:,}"
            if zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4], "big"):
                raise BadFileError(f"is a damaged PNG: the checksum of {place} is wrong")
            if problem := _misplaced(name, chunks, data):
                raise BadFileError(f"is a damaged PNG: {place} {problem}")
        if name == b"IEND":
            return
        chunks.append(name)
        at = end + 4
    raise BadFileError("is a PNG that is cut short: its end is missing")


def _misplaced(name: bytes, before: Sequence[bytes], data: bytes) -> str:
    """Returns why no reader takes a critical chunk after the chunks `before`; nothing if all do."""
    if name not in _PNG_KNOWN:
        return "is not a chunk of PNG"
    if (name == b"IHDR") == bool(before):
        return "is not where the header belongs"
    if name == b"PLTE" and (b"PLTE" in before or b"IDAT" in before):
        return "is not where the palette belongs"
    if name == b"IDAT":
        if data[25] == _PNG_PALETTE and b"PLTE" not in before:
            return "comes before the palette"
        if b"IDAT" in before and before[-1] != b"IDAT":
            return "is apart from the other image data"
    if name == b"IEND" and b"IDAT" not in before:
        return "comes before any image data"
    return ""


def _check_coding(data: bytes) -> None:
    """Refuses a JPEG that is coded as TensorFlow's reader cannot decode."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if coding := _JPEG_CODED.get(marker):
            raise BadFileError(f"is a {coding} JPEG, which TensorFlow does not decode; `format: png` may convert it")
        if marker == _JPEG_SCAN:
            return
        at += 1 if marker == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")


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
            "or with bytes after its end); `format: png` converts it"
        )
    return int(bits) // 8
