import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.pictures.pixels import encoded, pixels, rgb, where
from tfr_assets.pictures import MOST_THUMBNAILS, contact_sheet
from tfr_assets.pictures.palette import CARD, EDGE, FAINT

MARGIN, STRIDE, SIDE = 20, 140, 128


def photograph(width: int = 300, height: int = 200) -> Image.Image:
    """Returns a smooth picture of which every part looks different."""
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    return Image.fromarray((np.stack([x, y, (1 - x) * y], 2) * 255).astype(np.uint8))


def first(png: bytes, height: int, width: int = SIDE) -> np.ndarray:
    """Returns the first thumbnail of a sheet without a title."""
    return pixels(png)[MARGIN : MARGIN + height, MARGIN : MARGIN + width].astype(int)


def expected(image: Image.Image) -> np.ndarray:
    small = image.convert("RGB")
    small.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    return np.asarray(small).astype(int)


def test_small_images_become_crisp_pixels() -> None:
    digit = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    crisp = np.kron(digit, np.ones((16, 16), np.uint8))
    for image in (digit, digit[:, :, None], np.stack([digit] * 3, 2), encoded(Image.fromarray(digit), "PNG")):
        assert (first(contact_sheet([image], ["8"]), SIDE) == crisp[:, :, None]).all()


@pytest.mark.parametrize(
    ("format", "options", "worst"),
    [
        ("PNG", {}, 0),
        ("BMP", {}, 0),
        ("WEBP", {"lossless": True}, 0),
        ("JPEG", {"quality": 95}, 12),
        ("JPEG", {"quality": 95, "progressive": True}, 12),
        ("GIF", {}, 60),
    ],
)
def test_every_format_looks_as_pillow_has_it(format: str, options: dict[str, object], worst: int) -> None:
    image = photograph()
    drawn = first(contact_sheet([encoded(image, format, **options)], ["x"]), 85)
    assert np.abs(drawn - expected(image)).max() <= worst


def test_other_kinds_of_pixels_are_told_from_their_bytes() -> None:
    wide = np.arange(65_536, dtype=np.uint16).reshape(256, 256)
    image = photograph()
    for file, same in (
        (encoded(Image.fromarray(wide), "PNG"), Image.fromarray((wide >> 8).astype(np.uint8))),
        (encoded(image.convert("L"), "JPEG", quality=95), image.convert("L")),
        (encoded(image.convert("CMYK"), "JPEG", quality=95), image),
        (encoded(image.convert("1"), "PNG"), image.convert("1")),
        (encoded(image.convert("P"), "PNG"), image.convert("P").convert("RGB")),
    ):
        like = expected(same)
        drawn = first(contact_sheet([file], ["x"]), len(like))
        assert np.abs(drawn - like).mean() < 3


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_respected(orientation: int) -> None:
    turned = {
        1: [],
        2: [Image.Transpose.FLIP_LEFT_RIGHT],
        3: [Image.Transpose.ROTATE_180],
        4: [Image.Transpose.FLIP_TOP_BOTTOM],
        5: [Image.Transpose.TRANSPOSE],
        6: [Image.Transpose.ROTATE_90],
        7: [Image.Transpose.TRANSVERSE],
        8: [Image.Transpose.ROTATE_270],
    }
    stored = photograph()
    for transpose in turned[orientation]:
        stored = stored.transpose(transpose)
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = encoded(stored, "JPEG", quality=95, exif=exif)
    assert np.abs(first(contact_sheet([file], ["x"]), 85) - expected(photograph())).max() <= 15


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("exif", [b"Exif\0\0garbage", b"Exif\0\0", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12"])
def test_damaged_exif_data_does_not_matter(exif: bytes) -> None:
    file = encoded(photograph(), "JPEG", quality=95, exif=exif)
    assert np.abs(first(contact_sheet([file], ["x"]), 85) - expected(photograph())).max() <= 15


def test_what_is_transparent_is_white() -> None:
    clear = photograph().convert("RGBA")
    clear.putalpha(0)
    keyed = Image.new("RGB", (300, 200), (9, 8, 7))
    for file in (
        encoded(clear, "PNG"),
        encoded(clear, "WEBP"),
        encoded(clear.convert("LA"), "PNG"),
        encoded(Image.new("P", (300, 200), 3), "GIF", transparency=3),
        encoded(keyed, "PNG", transparency=(9, 8, 7)),
    ):
        assert (first(contact_sheet([file], ["x"]), 85) == 255).all()


def is_crossed_out(png: bytes) -> bool:
    faint = where(pixels(png)[MARGIN:, MARGIN:], FAINT)
    corners = range(30)
    return all(faint[at, at] and faint[SIDE - at, at] for at in corners if at)


BROKEN = {
    "nothing": b"",
    "text": b"no image at all",
    "cut JPEG": encoded(photograph(), "JPEG")[:-400],
    "cut PNG": encoded(photograph(), "PNG")[:900],
    "cut WebP": encoded(photograph(), "WEBP")[:200],
    "cut BMP": encoded(photograph(), "BMP")[:5000],
    "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n",
}


@pytest.mark.parametrize("file", BROKEN.values(), ids=BROKEN)
def test_a_broken_image_is_a_crossed_box(file: bytes) -> None:
    assert is_crossed_out(contact_sheet([file], ["x"]))
    assert not is_crossed_out(contact_sheet([encoded(photograph(), "PNG")], ["x"]))


def test_an_image_that_would_fill_the_memory_is_an_empty_box() -> None:
    plain = encoded(Image.new("1", (6000, 6000)), "PNG")
    bomb = encoded(Image.new("1", (20_000, 20_000)), "PNG")
    for file in (plain, bomb):
        png = contact_sheet([file], ["x"])
        box = pixels(png)[MARGIN : MARGIN + SIDE, MARGIN : MARGIN + SIDE]
        assert not is_crossed_out(png)
        assert where(box, CARD).mean() > 0.9


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["JPEG", "PNG", "GIF", "BMP", "WEBP"]), st.data())
def test_no_damage_is_too_much(format: str, data: st.DataObject) -> None:
    file = bytearray(encoded(photograph(40, 30), format))
    for _ in range(data.draw(st.integers(1, 8))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    pixels(contact_sheet([bytes(file)], ["x"]))


def test_twenty_four_photographs_of_noise_fit() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (2000, 2000, 3), dtype=np.uint8)
    files = [encoded(Image.fromarray(np.roll(noise, at * 1000)), "JPEG", quality=60) for at in range(2)]
    sheet = pixels(contact_sheet(files * 12, ["noise"] * 24, "Noise"))
    assert len(np.unique(sheet.reshape(-1, 3), axis=0)) >= 60


def test_noise_that_no_scaling_smoothes_fits() -> None:
    rng = np.random.default_rng(6)
    noise = [rng.integers(0, 256, (64, 64, 3), dtype=np.uint8) for _ in range(MOST_THUMBNAILS)]
    pixels(contact_sheet(noise, [f"{at} noise " * 20 for at in range(MOST_THUMBNAILS)], "W" * 200))


def test_photographs_keep_their_size_and_lose_colours_first() -> None:
    rng = np.random.default_rng(2)
    heights = []
    for details in (6, 200):
        files = []
        for _ in range(MOST_THUMBNAILS // 4):
            rough = Image.fromarray(rng.integers(0, 256, (details, details, 3), dtype=np.uint8))
            files.append(encoded(rough.resize((400, 400), Image.Resampling.BICUBIC), "JPEG", quality=90))
        sheet = pixels(contact_sheet(files * 4, ["photograph"] * MOST_THUMBNAILS))
        assert len(np.unique(sheet.reshape(-1, 3), axis=0)) <= 256
        heights.append(len(sheet))
    full = len(pixels(contact_sheet([np.zeros((8, 8), np.uint8)] * MOST_THUMBNAILS, [""] * MOST_THUMBNAILS)))
    assert heights[0] == full > heights[1]


def test_more_images_than_there_is_room_for_are_left_out() -> None:
    dot = np.zeros((8, 8), np.uint8)
    captions = [str(number) for number in range(100)]
    whole = contact_sheet([dot] * 100, captions)
    assert whole == contact_sheet([dot] * MOST_THUMBNAILS, captions[:MOST_THUMBNAILS])
    assert where(pixels(whole), "#000000").sum() >= MOST_THUMBNAILS * SIDE * SIDE


def test_captions_of_any_length_and_script_stay_in_their_column() -> None:
    dots = [np.full((8, 8), 200, np.uint8)] * 6
    captions = ["W" * 200, "кошка " * 40, "猫" * 200, "\udcff\n\t" * 70, "", "x"]
    sheet = pixels(contact_sheet(dots, captions))
    words = sheet[MARGIN + SIDE + 2 : -2]
    for column in range(5):
        gap = words[:, MARGIN + column * STRIDE + SIDE + 1 : MARGIN + (column + 1) * STRIDE - 1]
        assert where(gap, CARD).all()


def test_no_images_are_a_picture_too() -> None:
    assert (~where(pixels(contact_sheet([], [], "Nothing")), CARD)).sum() > 500


def test_equal_images_give_equal_bytes() -> None:
    files = [encoded(photograph(), "JPEG"), b"broken"]
    assert contact_sheet(files, ["a", "b"], "t") == contact_sheet(files, ["a", "b"], "t")


def test_arguments_that_cannot_be_drawn_are_errors() -> None:
    with pytest.raises(ValueError, match="2 images and 1 captions"):
        contact_sheet([b"", b""], ["x"])
    for array in (np.zeros((8, 8)), np.zeros(8, np.uint8), np.zeros((8, 8, 5), np.uint8), np.zeros((0, 8), np.uint8)):
        with pytest.raises(ValueError, match="pixels are uint8 of shape"):
            contact_sheet([array], ["x"])


def test_the_photographs_of_a_dataset_are_recognizable() -> None:
    load_sample_images = pytest.importorskip("sklearn.datasets").load_sample_images
    for image in load_sample_images().images:
        photo = Image.fromarray(image)
        like = expected(photo)
        drawn = first(contact_sheet([encoded(photo, "JPEG", quality=90)] * 24, ["photo"] * 24), len(like))
        assert np.corrcoef(drawn.ravel(), like.ravel())[0, 1] > 0.97


def test_the_sheets_card_is_light_and_framed() -> None:
    sheet = pixels(contact_sheet([], []))
    assert min(rgb(CARD)) > 240
    assert where(sheet, EDGE)[[0, -1], :].all()
    assert where(sheet, EDGE)[:, [0, -1]].all()
    assert io.BytesIO(contact_sheet([], [])).read(8) == b"\x89PNG\r\n\x1a\n"
