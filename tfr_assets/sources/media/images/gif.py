"""A GIF's blocks: what TensorFlow makes of a GIF depends on its frames, not on the size of the screen in its header.

`tf.io.decode_image` gives the first frame in its own size, and refuses it where its compressed data end too early or
name colors that the table of colors does not have. All blocks are walked, and the first frame is decoded.
"""

import struct
from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple

from PIL import GifImagePlugin

from tfr_assets.sources.model.kinds import BadFileError

_SCREEN = struct.Struct("<6sHHBBB")
_FRAME = struct.Struct("<BHHHHB")
_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B
_HAS_COLORS, _COLORS = 0x80, 0x07  # of a byte of flags: whether a table of colors follows, and its size


class Frame(NamedTuple):
    """One frame.

    Attributes:
        height: Pixels.
        width: Pixels.
        colors: Bytes of its table of colors, three per color; the file's, where it has none of its own.
        flags: Of the frame.
        start: Where its compressed data begin, with their code size.
        end: Where the next block begins.
    """

    height: int
    width: int
    colors: bytes
    flags: int
    start: int
    end: int


def first_frame(data: bytes, max_pixels: int) -> Frame:
    """Returns the first frame, which can be decoded, of a GIF whose blocks are all there.

    Raises:
        BadFileError: The GIF is damaged or cut short, or the first frame is too large or cannot be decoded.
    """
    frames = list(_frames(data))
    if not frames:
        raise BadFileError("is a GIF without a frame")
    first = frames[0]
    if first.height * first.width > max_pixels:
        raise BadFileError(
            f"is a GIF whose first frame has {first.width:,} × {first.height:,} pixels, "
            f"more than `max_pixels` ({max_pixels:,})"
        )
    _check_pixels(data, first)
    return first


def _frames(data: bytes) -> Iterator[Frame]:
    try:
        _, _, _, screen, _, _ = _SCREEN.unpack_from(data)
        at = _SCREEN.size + _color_bytes(screen)
        shared = data[_SCREEN.size : at]
        while (block := data[at]) != _TRAILER:
            if block == _EXTENSION:
                at = _after_parts(data, at + 2)
                continue
            if block != _IMAGE:
                raise BadFileError(f"is a damaged GIF: no block begins at byte {at:,}")
            _, _, _, width, height, flags = _FRAME.unpack_from(data, at)
            start = at + _FRAME.size + _color_bytes(flags)
            colors = data[at + _FRAME.size : start] or shared
            if not (width and height and colors):
                raise BadFileError(
                    f"is a damaged GIF: the frame at byte {at:,} has no {'pixels' if colors else 'colors'}"
                )
            at = _after_parts(data, start + 1)
            yield Frame(height, width, colors, flags, start, at)
    except (IndexError, struct.error) as error:
        raise BadFileError("is a GIF that is cut short: its end is missing") from error


def _color_bytes(flags: int) -> int:
    return 3 << (flags & _COLORS) + 1 if flags & _HAS_COLORS else 0


def _after_parts(data: bytes, at: int) -> int:
    """Returns where parts end that each begin with their size; the last one is empty."""
    while size := data[at]:
        at += 1 + size
    return at + 1


def _check_pixels(data: bytes, frame: Frame) -> None:
    """Decodes a frame's color numbers, as the only frame of a GIF of its size."""
    size = (frame.width, frame.height)
    count = len(frame.colors) // 3
    flags = _HAS_COLORS | count.bit_length() - 2
    alone = (
        _SCREEN.pack(b"GIF89a", *size, flags, 0, 0)
        + frame.colors
        + _FRAME.pack(_IMAGE, 0, 0, *size, frame.flags & ~(_HAS_COLORS | _COLORS))
        + data[frame.start : frame.end]
        + b";"
    )
    try:
        image = GifImagePlugin.GifImageFile(BytesIO(alone))
        image.load()
    except (SyntaxError, OSError, ValueError, EOFError) as error:
        raise BadFileError(f"is a damaged GIF: its first frame cannot be decoded: {error!s:.200}") from error
    highest = image.getextrema()[1]
    if isinstance(highest, int | float) and highest >= count:
        raise BadFileError(f"is a damaged GIF: its first frame has color {highest}, of {count}")
