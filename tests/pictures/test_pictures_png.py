import base64
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from tests.pictures.pixels import encoded
from tfr_assets.pictures import LIMIT, as_markdown
from tfr_assets.pictures.png import CHARTS, PHOTOGRAPHS, encode, shrinking


def test_importing_the_room_imports_no_library() -> None:
    code = "import tfr_assets.pictures, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert set(modules).isdisjoint({"PIL", "matplotlib", "numpy", "dagster", "pyarrow"})


def test_markdown_holds_the_picture_itself() -> None:
    png = encoded(Image.new("RGB", (3, 2), "red"), "PNG")
    text = as_markdown(png, "a red picture")
    head, data = text.split("base64,")
    assert head == "![a red picture](data:image/png;"
    assert base64.b64decode(data.removesuffix(")"), validate=True) == png


def test_markdown_keeps_an_alternative_text_in_its_brackets() -> None:
    assert as_markdown(b"", "two\nlines [x](y) \\").startswith(r"![two lines \[x\](y) \\](data:")


def noise(side: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(7).integers(0, 256, (side, side, 3), dtype=np.uint8))


def test_a_picture_that_fits_keeps_all_its_colours() -> None:
    picture = noise(150)
    png = encode([picture], PHOTOGRAPHS)
    assert png == encoded(picture, "PNG", optimize=True)
    assert 60_000 < len(png) < LIMIT


@pytest.mark.parametrize("colours", [CHARTS, PHOTOGRAPHS])
def test_even_noise_fits_at_last(colours: tuple[int | None, ...]) -> None:
    assert len(encode(shrinking(noise(500)), colours)) < LIMIT


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="no version of the picture fits into 100,000 bytes"):
        encode([noise(500)], PHOTOGRAPHS)
