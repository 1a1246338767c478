"""What is shown of raw data that is out of the ordinary."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.sources.media_files import encoded, image, write
from tests.sources.recordings import encoded as recorded
from tests.sources.recordings import of_format, tone
from tfr_assets.components.metadata import previews as module
from tfr_assets.components.metadata.previews import previews
from tfr_assets.pictures import contact_sheet, waveform_strip
from tfr_assets.sources import parse_source, take_inventory


def shown_of(said: Any, folder: Path) -> dict[str, Any]:
    inventory = take_inventory(parse_source(said), folder / "landing")
    return previews(inventory, 0, inventory.rows)


def picture(value: Any) -> Image.Image:
    png = base64.b64decode(value.value.partition("base64,")[2].rstrip(")"))
    return Image.open(io.BytesIO(png)).convert("RGB")


@pytest.mark.parametrize("more", [{}, {"size": [6, 9]}, {"channels": 1}, {"size": [6, 9], "channels": 1}])
def test_pixels_are_shown_as_images_are(more: dict[str, Any], tmp_path: Path) -> None:
    pictures = [image("L", seed=number) for number in range(3)]
    write(tmp_path / "in", {f"{number}.png": encoded(each, "PNG") for number, each in enumerate(pictures)})
    shown = shown_of({"images": {"path": str(tmp_path / "in"), "format": "raw"} | more}, tmp_path)
    sheet = contact_sheet([np.asarray(each) for each in pictures], [f"{number}.png" for number in range(3)])
    assert picture(shown["image"]).tobytes() == Image.open(io.BytesIO(sheet)).convert("RGB").tobytes()


def test_a_recording_that_only_seems_whole_is_shown_as_damaged(tmp_path: Path) -> None:
    data = bytearray(of_format("flac", tone(seconds=2)))
    data[len(data) // 2 : len(data) // 2 + 60] = bytes(range(60))
    write(tmp_path / "in", {"bad.flac": bytes(data), "good.wav": of_format("wav", tone())})
    strip = waveform_strip([(np.zeros(0, np.float32), 16000), (tone()[:, 0], 16000)], ["bad.flac: damaged", "good.wav"])
    shown = shown_of({"audio": str(tmp_path / "in")}, tmp_path)
    assert picture(shown["audio"]).size == Image.open(io.BytesIO(strip)).size


@pytest.mark.parametrize("samples", ["encoded", "float32"])
def test_of_long_recordings_the_begin_is_drawn(samples: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 1)
    sound = np.concatenate([tone(seconds=1), 0.1 * tone(seconds=1)])
    write(tmp_path / "in", {"a.wav": recorded(sound, subtype="FLOAT")})
    shown = shown_of({"audio": {"path": str(tmp_path / "in"), "samples": samples}}, tmp_path)
    strip = waveform_strip([(sound[:16000, 0], 16000)], ["a.wav"], "The first 1 seconds of each")
    assert picture(shown["audio"]).tobytes() == Image.open(io.BytesIO(strip)).convert("RGB").tobytes()


def test_no_more_is_held_than_fits_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 300)
    write(tmp_path / "in", {f"{number}.png": encoded(image(seed=number), "PNG") for number in range(9)})
    shown = shown_of({"images": str(tmp_path / "in")}, tmp_path)
    few = shown_of({"images": str(tmp_path / "in" / "[01].png")}, tmp_path)
    assert picture(shown["image"]).size == picture(few["image"]).size
