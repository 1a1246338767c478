"""Images that are damaged as real ones are: each is named, skipped where that is asked for, and never a crash."""

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.media_files import encoded, image, list_kind, write
from tfr_assets.sources.media.images.header import read_header
from tfr_assets.sources.model.image_options import MAX_PIXELS
from tfr_assets.sources.model.kinds import BadFileError
from tfr_assets.sources.model.source import Source

Chunks = list[tuple[bytes, bytes]]
GIF = encoded(image("P"), "GIF")
ANIMATED = encoded(image("P"), "GIF", save_all=True, append_images=[image("P", seed=1), image("P", seed=2)])
FRAME = GIF.index(b"\x2c", 13 + 3 * (2 << (GIF[10] & 7)))  # where its only frame begins


def chunks_of(png: bytes) -> Chunks:
    found, at = [], 8
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        found.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + size]))
        at += 12 + size
    return found


def png_of(chunks: Chunks) -> bytes:
    parts = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def gif_frame(data: bytes, left: int, top: int, width: int, height: int) -> bytes:
    """Returns a GIF whose only frame is said to be elsewhere, or of another size."""
    return patched(data, FRAME + 1, struct.pack("<HHHH", left, top, width, height))


def header(data: bytes) -> tuple[int, int, int]:
    found = read_header(data, MAX_PIXELS)
    return found.height, found.width, found.channels


PALETTE = chunks_of(encoded(image("P"), "PNG"))
RGB = chunks_of(encoded(image(), "PNG"))
IDAT = next(body for name, body in RGB if name == b"IDAT")
HEAD, END = RGB[0], (b"IEND", b"")
LOSSLESS = encoded(image()).replace(b"\xff\xc0", b"\xff\xc3", 1)
BAD = {
    "a frame far beyond the screen.gif": (gif_frame(GIF, 65_000, 65_000, 9, 6), "gif"),
    "a frame larger than its data.gif": (gif_frame(GIF, 0, 0, 900, 600), "first frame cannot be decoded"),
    "an empty frame.gif": (gif_frame(GIF, 0, 0, 0, 6), "has no pixels"),
    "no colors.gif": (GIF[:10] + bytes([GIF[10] & 0x7F]) + GIF[11:13] + GIF[FRAME:], "has no colors"),
    "no frame.gif": (GIF[:FRAME] + b";", "no more images|without a frame"),
    "no block.gif": (patched(GIF, FRAME, b"?"), "no block begins at byte|not found in GIF frame"),
    "a name that is not ASCII.png": (
        png_of([HEAD])[:8] + struct.pack(">I", 4) + b"\xc9D\xffT" + bytes(8) + png_of(RGB)[8:],
        "damaged|damage",
    ),
    "an unknown critical chunk.png": (
        png_of([HEAD, (b"ABCD", b""), *RGB[1:]]),
        "ABCD at byte 33 is not a chunk",
    ),
    "two headers.png": (png_of([HEAD, *RGB]), "not where the header belongs|damaged"),
    "no palette.png": (png_of([each for each in PALETTE if each[0] != b"PLTE"]), "comes before the palette"),
    "two palettes.png": (png_of([PALETTE[0], PALETTE[1], *PALETTE[1:]]), "not where the palette belongs"),
    "no data.png": (png_of([HEAD, END]), "comes before any image data"),
    "data apart.png": (
        png_of([HEAD, (b"IDAT", IDAT[:20]), (b"tEXt", b"a\0b"), (b"IDAT", IDAT[20:]), END]),
        "apart from the other image data",
    ),
    "lossless.jpg": (LOSSLESS, "lossless JPEG, which TensorFlow does not decode"),
}


@pytest.mark.parametrize("name", BAD)
def test_damage_is_told_of_and_skipped(name: str, tmp_path: Path) -> None:
    data, reason = BAD[name]
    with pytest.raises(BadFileError, match=f"(?i){reason}"):
        read_header(data, MAX_PIXELS)
    folder = write(tmp_path / "data", {name: data, "good.jpg": encoded(image())})
    for options in ({}, {"size": [4, 4]}):
        source = Source(path=str(folder), kind="images", options={**options, "on_error": "skip"})
        (tmp_path / "skipped").mkdir(exist_ok=True)
        listing, found = list_kind(source, tmp_path)
        assert "good.jpg" in listing[".file"].to_pylist()
        assert len(listing) + found.skipped == 2


@pytest.mark.parametrize("name", BAD)
def test_tensorflow_decodes_none_of_what_is_refused(name: str) -> None:
    tf = pytest.importorskip("tensorflow")
    if name in ("a frame far beyond the screen.gif", "a frame larger than its data.gif", "data apart.png"):
        pytest.skip("TensorFlow decodes a part of it, or black, without a word")
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.decode_image(BAD[name][0])


@pytest.mark.parametrize(("left", "top", "width", "height"), [(0, 0, 9, 6), (3, 2, 9, 6), (100, 0, 9, 6), (0, 0, 5, 4)])
def test_a_gif_has_the_shape_of_its_first_frame_as_in_tensorflow(left: int, top: int, width: int, height: int) -> None:
    tf = pytest.importorskip("tensorflow")
    for gif in (gif_frame(GIF, left, top, width, height), patched(GIF, 6, struct.pack("<HH", 40, 30)), ANIMATED):
        assert header(gif) == tuple(tf.io.decode_image(gif, expand_animations=False).shape)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["JPEG", "PNG", "GIF", "BMP", "WEBP"]),
    st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 255)), min_size=1, max_size=8),
    st.integers(0, 12),
)
def test_whatever_is_wrong_with_an_image_is_one_kind_of_error(
    format_: str, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(encoded(image("P" if format_ == "GIF" else "RGB"), format_))
    for at, value in changes:
        data[at % len(data)] = value
    try:
        read_header(bytes(data[: len(data) - cut]), MAX_PIXELS)
    except BadFileError as error:
        assert str(error)
