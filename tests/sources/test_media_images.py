import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pyarrow as pa
import pytest
from PIL import Image, ImageOps

from tests.sources.media_files import encoded, expand, image, list_kind, write
from tfr_assets.errors import ConfigError, SourceChanged, SourceError
from tfr_assets.option_groups import validate
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.sources.media.images import kind as images
from tfr_assets.sources.media.images.header import read_header
from tfr_assets.sources.model.image_options import MAX_PIXELS, ImageOptions
from tfr_assets.sources.model.kinds import BadFileError
from tfr_assets.sources.model.source import Source

PHOTOGRAPHS = Path("/work/shared/data/sign_digits")


def source(path: Path, **options: Any) -> Source:
    return Source(path=str(path), kind="images", options=options)


def records(of: Source, work: Path) -> pa.Table:
    listing, found = list_kind(of, work)
    return expand(of, listing, found.classes)


def oriented(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def opened(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)))


SIXTEEN_BITS = np.random.default_rng(1).integers(0, 65536, (6, 9, 4), np.uint16)
GOOD = {
    "gray.jpg": encoded(image("L")),
    "rgb.jpeg": encoded(image()),
    "cmyk.jpg": encoded(image("CMYK")),
    "progressive.jpg": encoded(image(), progressive=True),
    "turned.JPG": encoded(image(), exif=oriented(6)),
    "gray.png": encoded(image("L"), "PNG"),
    "gray with a transparent value.png": encoded(image("L"), "PNG", transparency=3),
    "bits.png": encoded(image("1"), "PNG"),
    "gray alpha.png": encoded(image("LA"), "PNG"),
    "rgb.png": encoded(image(), "PNG"),
    "rgb with a transparent color.png": encoded(image(), "PNG", transparency=(1, 2, 3)),
    "rgba.png": encoded(image("RGBA"), "PNG"),
    "palette.png": encoded(image("P"), "PNG"),
    "palette with transparency.png": encoded(image("P"), "PNG", transparency=3),
    "16 bits.png": encoded(image("I;16"), "PNG"),
    "palette.gif": encoded(image("P"), "GIF"),
    "animated.gif": encoded(image("P"), "GIF", save_all=True, append_images=[image("P", seed=1)]),
    "rgb.bmp": encoded(image(), "BMP"),
    "rgba.bmp": encoded(image("RGBA"), "BMP"),
    "gray.bmp": encoded(image("L"), "BMP"),
    "rgb.webp": encoded(image(), "WEBP"),
    "rgba.webp": encoded(image("RGBA"), "WEBP", lossless=True),
}


def test_files_pass_untouched_and_are_told_of_as_tensorflow_reads_them(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    more = {f"16 bits {n}.png": tf.io.encode_png(SIXTEEN_BITS[..., :n]).numpy() for n in (2, 3, 4)}
    files = GOOD | more
    table = records(source(write(tmp_path / "data", files)), tmp_path)
    assert table.num_rows == len(files)
    for row in table.to_pylist():
        data = row["image/encoded"]
        assert data == files[row["image/filename"]]
        read = tf.io.decode_image(data, channels=0, expand_animations=False)
        shape = (row["image/height"], row["image/width"], row["image/channels"])
        assert shape == tuple(read.shape), row["image/filename"]
        assert row["image/format"] == Image.open(io.BytesIO(data)).format.lower()
        assert row["image/orientation"] == (6 if row["image/filename"] == "turned.JPG" else 1)


def test_the_content_decides_over_the_format(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"really.png": GOOD["rgb.jpeg"], "really.jpg": GOOD["gray.png"]})
    assert records(source(folder), tmp_path)["image/format"].to_pylist() == ["png", "jpeg"]


def test_records_of_labelled_images(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"dog/1.png": GOOD["rgb.png"], "cat/2.jpg": GOOD["gray.jpg"]})
    table = records(source(folder, classes=["dog", "cat"]), tmp_path)
    assert table.drop_columns(["image/encoded"]).to_pylist()[0] == {
        "image/format": "jpeg",
        "image/height": 6,
        "image/width": 9,
        "image/channels": 1,
        "image/orientation": 1,
        "image/filename": "cat/2.jpg",
        "image/class/label": 1,
        "image/class/text": "cat",
    }


def test_only_the_columns_that_are_wanted_are_made(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"a/1.png": GOOD["rgb.png"]})
    of = source(folder)
    listing, found = list_kind(of, tmp_path)
    (folder / "a/1.png").unlink()
    without = expand(of, listing, found.classes, ["image/filename", "image/class/label", "image/height"])
    assert without.to_pylist() == [{"image/height": 6, "image/filename": "a/1.png", "image/class/label": 0}]
    with pytest.raises(SourceChanged, match=r"a/1\.png: is no longer there"):
        expand(of, listing, found.classes)


LARGE = image(height=60, width=90)
PREVIEW = encoded(image(), exif=oriented(1))


def with_preview(data: bytes) -> bytes:
    """Puts a whole small JPEG into a segment of another, as cameras do."""
    segment = b"Exif\0\0" + PREVIEW
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:]


def whole(format_: str) -> bytes:
    if format_ == "JPEG with a preview":
        return with_preview(encoded(LARGE))
    return encoded(LARGE.convert("P") if format_ == "GIF" else LARGE, format_)


@pytest.mark.parametrize("format_", ["JPEG", "JPEG with a preview", "PNG", "GIF", "BMP", "WEBP"])
def test_an_image_that_is_cut_anywhere_is_found(format_: str) -> None:
    data = whole(format_)
    assert read_header(data, MAX_PIXELS)[1:3] == (60, 90)
    for size in {*range(0, len(data), 37), *range(40), *range(len(data) - 40, len(data))}:
        with pytest.raises(BadFileError):
            read_header(data[:size], MAX_PIXELS)


def test_any_flipped_bit_of_a_png_is_found() -> None:
    data = GOOD["palette.png"]
    assert read_header(data, MAX_PIXELS).channels == 3
    for at in range(len(data)):
        with pytest.raises(BadFileError):
            read_header(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :], MAX_PIXELS)


@pytest.mark.parametrize("name", ["rgb.jpeg", "rgb.png", "palette.gif", "rgb.webp"])
def test_bytes_behind_the_end_do_no_harm_where_tensorflow_reads_on(tmp_path: Path, name: str) -> None:
    behind = b"\0" * 5 if name.endswith("gif") else b"preview \xff\xd8 of something"
    folder = write(tmp_path / "data", {name: GOOD[name] + behind})
    assert records(source(folder), tmp_path)["image/encoded"].to_pylist() == [GOOD[name] + behind]


def os2_bitmap() -> bytes:
    """Returns a BMP with the header of OS/2, which has 12 bytes instead of 40."""
    pixels = bytes(4 * 3)
    return b"BM" + struct.pack("<IHHI", 26 + len(pixels), 0, 0, 26) + struct.pack("<IHHHH", 12, 1, 3, 1, 24) + pixels


ANIMATED = encoded(image(), "WEBP", save_all=True, append_images=[image(seed=1)])
BAD = {
    "empty.jpg": (b"", "is empty (0 bytes)"),
    "page.jpg": (b"<html>404</html>", "is not a JPEG, PNG, GIF, BMP or WebP image: it begins with b'<html>404</html>'"),
    "cut.jpg": (GOOD["rgb.jpeg"][:-1], "is a JPEG that is cut short: its end is missing"),
    "cut.png": (GOOD["rgb.png"][:-1], "is a PNG that is cut short"),
    "cut header.png": (GOOD["rgb.png"][:20], "is a PNG, but its header is damaged or cut short"),
    "damaged.png": (GOOD["rgb.png"].replace(b"IHDR", b"IHDX", 1), "is a PNG, but its header is damaged"),
    "animated.webp": (
        ANIMATED,
        "is an animated WebP, on which TensorFlow crashes; `format: png` takes its first frame",
    ),
    "palette.bmp": (encoded(image("P"), "BMP"), "is a BMP that TensorFlow does not read rightly"),
    "bits.bmp": (encoded(image("1"), "BMP"), "is a BMP that TensorFlow does not read rightly"),
    "longer.bmp": (GOOD["rgb.bmp"] + b"x", "is a BMP that TensorFlow does not read rightly"),
    "os2.bmp": (os2_bitmap(), "is a BMP that TensorFlow does not read rightly"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_with_the_reason_or_skipped(tmp_path: Path, name: str) -> None:
    data, problem = BAD[name]
    folder = write(tmp_path / "data", {name: data, "good.png": GOOD["rgb.png"]})
    with pytest.raises(SourceError) as error:
        list_kind(source(folder), tmp_path)
    assert f"{folder}/{name}: {problem}" in str(error.value)
    listing, found = list_kind(source(folder, on_error="skip"), tmp_path)
    assert listing[".file"].to_pylist() == ["good.png"]
    assert found.first_skipped[0][0] == name
    assert problem in found.first_skipped[0][1]


@pytest.mark.parametrize("name", ["animated.webp", "palette.bmp", "bits.bmp", "longer.bmp", "os2.bmp"])
def test_what_tensorflow_cannot_read_is_taken_when_it_is_converted(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "data", {name: BAD[name][0]})
    row = records(source(folder, format="png"), tmp_path).to_pylist()[0]
    expected = Image.open(io.BytesIO(BAD[name][0]))
    assert row["image/format"] == "png"
    assert np.array_equal(
        opened(row["image/encoded"]), np.asarray(expected.convert("L" if name == "bits.bmp" else "RGB"))
    )


def test_more_pixels_than_allowed(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"large.png": encoded(LARGE, "PNG")})
    with pytest.raises(SourceError, match=r"large\.png: has 90 × 60 pixels, more than `max_pixels` \(5,399\)"):
        list_kind(source(folder, max_pixels=5399), tmp_path)
    assert list_kind(source(folder, max_pixels=5400), tmp_path)[0].num_rows == 1
    header = bytearray(GOOD["rgb.png"])
    header[16:24] = struct.pack(">II", 60_000, 60_000)  # a bomb: few bytes that state many pixels
    header[29:33] = struct.pack(">I", zlib.crc32(header[12:29]))
    write(folder, {"large.png": bytes(header)})
    for options in ({}, {"size": [8, 8]}):
        with pytest.raises(SourceError, match="has 60,000 × 60,000 pixels"):
            list_kind(source(folder, **options), tmp_path)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("size", [None, [20, 40]])
def test_a_conversion_turns_images_upright(tmp_path: Path, orientation: int, size: list[int] | None) -> None:
    data = encoded(LARGE, quality=100, exif=oriented(orientation))
    folder = write(tmp_path / "data", {"x.jpg": data})
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    options = {"size": size} if size else {}
    row = records(source(folder, format="png", **options), tmp_path).to_pylist()[0]
    height, width = size or upright.size[::-1]
    assert (row["image/height"], row["image/width"], row["image/channels"]) == (height, width, 3)
    assert "image/orientation" not in row
    found = opened(row["image/encoded"]).astype(int)
    expected = np.asarray(upright.resize((width, height), Image.Resampling.BICUBIC)).astype(int)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() == 0


def smooth(height: int, width: int) -> Image.Image:
    rows, columns = np.mgrid[0:height, 0:width]
    waves = [128 + 120 * np.sin(rows / a) * np.cos(columns / b) for a, b in ((90, 70), (50, 120), (200, 33))]
    return Image.fromarray(np.stack(waves, -1).astype(np.uint8))


def test_a_large_photograph_is_made_small_by_way_of_a_fraction(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"x.jpg": encoded(smooth(1000, 1500), quality=95)})
    found = np.asarray(
        records(source(folder, size=[64, 96], format="raw"), tmp_path)["image/pixels"]
        .combine_chunks()
        .to_numpy_ndarray()
    )
    expected = np.asarray(smooth(1000, 1500).resize((96, 64), Image.Resampling.BICUBIC)).astype(int)
    assert found.shape == (1, 64, 96, 3)
    assert np.abs(found[0] - expected).mean() < 1.5


def expected_png(name: str) -> np.ndarray:
    with Image.open(io.BytesIO(GOOD[name])) as picture:
        if picture.mode == "I;16":
            return (np.asarray(picture) >> 8).astype(np.uint8)
        gray = picture.mode in ("L", "1", "LA")
        alpha = picture.has_transparency_data
        return np.asarray(
            ImageOps.exif_transpose(picture).convert(("LA" if alpha else "L") if gray else "RGBA" if alpha else "RGB")
        )


def test_png_loses_nothing_but_depth(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", GOOD)
    for row in records(source(folder, format="png"), tmp_path).to_pylist():
        found, expected = opened(row["image/encoded"]), expected_png(row["image/filename"])
        assert np.array_equal(found, expected), row["image/filename"]
        assert row["image/channels"] == (expected.shape[2] if expected.ndim == 3 else 1)


def test_raw_pixels(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", GOOD | {"large.png": encoded(LARGE, "PNG")})
    for channels, mode in ((3, "RGB"), (1, "L")):
        table = records(source(folder, format="raw", channels=channels), tmp_path)
        assert table.schema.field("image/pixels").type == pa.large_list(pa.uint8())
        rows = {row["image/filename"]: row for row in table.to_pylist()}
        assert rows.keys() == {*GOOD, "large.png"}
        for name in ("rgb.png", "rgba.png", "palette.png", "gray.jpg", "large.png", "animated.gif"):
            row = rows[name]
            shape = (row["image/height"], row["image/width"], row["image/channels"])
            picture = Image.open(io.BytesIO(GOOD.get(name) or encoded(LARGE, "PNG"))).convert(mode)
            expected = np.asarray(picture).reshape(*shape)
            assert np.array_equal(np.array(row["image/pixels"], np.uint8).reshape(shape), expected)


def test_jpeg_of_a_quality(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"x.png": encoded(image("RGBA", 60, 90), "PNG"), "y.png": GOOD["16 bits.png"]})
    sizes = {}
    for quality in (10, 95):
        rows = records(source(folder, format="jpeg", quality=quality), tmp_path).to_pylist()
        assert [row["image/channels"] for row in rows] == [3, 1]
        assert [Image.open(io.BytesIO(row["image/encoded"])).format for row in rows] == ["JPEG", "JPEG"]
        sizes[quality] = len(rows[0]["image/encoded"])
    assert sizes[10] < sizes[95] / 2


def test_without_a_format_jpeg_stays_jpeg_and_all_else_becomes_png(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", GOOD)
    for row in records(source(folder, size=[4, 5]), tmp_path).to_pylist():
        expected = "jpeg" if row["image/filename"].lower().endswith(("jpg", "jpeg")) else "png"
        assert row["image/format"] == expected == Image.open(io.BytesIO(row["image/encoded"])).format.lower()
        assert (row["image/height"], row["image/width"]) == (4, 5) == opened(row["image/encoded"]).shape[:2]


def test_a_broken_body_is_found_by_a_conversion_before_anything_is_written(tmp_path: Path) -> None:
    data = encoded(LARGE, "JPEG", progressive=True)
    at = data.find(b"\xff\xc4", len(data) // 2)  # a table of codes between two scans
    folder = write(
        tmp_path / "data", {"broken.jpg": data[: at + 2] + b"\0\1" + data[at + 4 :], "good.png": GOOD["rgb.png"]}
    )
    assert list_kind(source(folder), tmp_path)[0].num_rows == 2
    with pytest.raises(SourceError, match=r"broken\.jpg: cannot be decoded: "):
        list_kind(source(folder, format="raw"), tmp_path)
    listing, found = list_kind(source(folder, format="raw", on_error="skip"), tmp_path)
    assert listing[".file"].to_pylist() == ["good.png"]
    assert found.made_by == [f"Pillow {PIL.__version__}"]


def test_sizes_count_what_takes_most_memory(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"x.png": encoded(Image.new("L", (200, 100)), "PNG"), "y.png": GOOD["rgb.png"]})
    files = [(folder / name).stat().st_size for name in ("x.png", "y.png")]
    for options, expected in (
        ({}, files),
        ({"format": "png"}, [20_000, max(files[1], 6 * 9 * 3)]),
        ({"format": "raw"}, [60_000, max(files[1], 6 * 9 * 3)]),
        ({"format": "raw", "size": [1, 2]}, files),
    ):
        listing, found = list_kind(source(folder, **options), tmp_path)
        expansion = images.expansion(source(folder, **options), listing.schema, found.classes)
        assert expansion.sizes(listing.combine_chunks().to_batches()[0]).tolist() == expected


def test_raw_pixels_of_one_size_become_a_feature_of_that_shape(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"a/x.png": GOOD["rgb.png"], "b/y.jpg": encoded(LARGE)})
    table = records(source(folder, size=[6, 9], format="raw"), tmp_path)
    assert table.schema.names == ["image/pixels", "image/filename", "image/class/label", "image/class/text"]
    spec = derive_spec(table.schema, dict.fromkeys(table.schema.names, 0), FeatureOptions())
    assert next(feature.shape for feature in spec.features if feature.name == "image/pixels") == (6, 9, 3)
    batch = table.combine_chunks().to_batches()[0]
    assert sum(frames.sizes.size for frames in ExampleEncoder(spec, {}).encode(batch, 0)) == 2
    assert np.array_equal(batch.column("image/pixels").to_numpy_ndarray()[0], np.asarray(image()))


def test_one_number_is_the_size_of_a_square() -> None:
    conversion = ImageOptions("x", size=224).conversion
    assert conversion and conversion.size == (224, 224)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"lables": "none"}, r"^source\.images\.lables: not a setting \(did you mean 'labels'\?\)"),
        ({"on_error": "ignore"}, r"^source\.images\.on_error: 'ignore' is not known\. Choose one of: fail, skip"),
        ({"format": "jpg"}, r"^source\.images\.format: 'jpg' is not known \(did you mean 'jpeg'\?\)"),
        (
            {"size": "224"},
            r"^source\.images\.size: expected 224, or \[height, width\] such as \[224, 320\]; found '224'",
        ),
        ({"size": True}, r"^source\.images\.size: expected 224, or \[height, width\]"),
        ({"size": 0}, r"^source\.images\.size\.height: expected a whole number from 1 to 65500; found 0"),
        ({"size": [0, 5]}, r"^source\.images\.size\.height: expected a whole number from 1 to 65500; found 0"),
        ({"size": [5, 1.5]}, r"^source\.images\.size\.width: expected a whole number"),
        ({"quality": 90}, r"^source\.images\.quality: has a meaning only with `format: jpeg`"),
        ({"quality": 90, "format": "png"}, r"^source\.images\.quality: has a meaning only"),
        ({"quality": 0, "format": "jpeg"}, r"^source\.images\.quality: expected a whole number from 1 to 100"),
        ({"channels": 1, "size": [2, 2]}, r"^source\.images\.channels: has a meaning only with `format: raw`"),
        ({"channels": 2, "format": "raw"}, r"^source\.images\.channels: expected 1 \(gray\) or 3 \(RGB\); found 2"),
        ({"max_pixels": True}, r"^source\.images\.max_pixels: expected a whole number"),
        ({"column": 3}, r"^source\.images\.column: expected the name of a column; found 3"),
        ({"column": "x", "labels": "folder"}, r"^source\.images\.labels: expected `none` or \{column: NAME\}"),
    ],
)
def test_invalid_options(options: dict, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        validate(ImageOptions, {"path": "x", **options}, "source.images")


@pytest.mark.skipif(not PHOTOGRAPHS.is_dir(), reason="the photographs are not on this machine")
def test_real_photographs(tmp_path: Path) -> None:
    listing, found = list_kind(source(PHOTOGRAPHS), tmp_path)
    assert listing.num_rows == found.files == 2062
    assert found.classes == {"image/class/label": tuple("0123456789")}
    turned = [row for row in listing.to_pylist() if row["image/orientation"] != 1]
    assert len(turned) == 3
    for row in expand(source(PHOTOGRAPHS), listing.slice(0, 200), found.classes).to_pylist():
        assert row["image/encoded"] == (PHOTOGRAPHS / row["image/filename"]).read_bytes()
        assert row["image/class/text"] == row["image/filename"].split("/")[0] == str(row["image/class/label"])
