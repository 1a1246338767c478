"""The bundled datasets of every kind, and what is shown of them."""

import base64
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tfr_assets.components.config.load import load_component
from tfr_assets.components.metadata.previews import previews
from tfr_assets.project import current_project
from tfr_assets.samples.digits import digit_files
from tfr_assets.samples.folder import write_folder
from tfr_assets.samples.mixed import mixed_files
from tfr_assets.samples.tones import tone_files
from tfr_assets.samples.topics import topic_files
from tfr_assets.sources import Inventory, seen_from, take_inventory

pytest.importorskip("sklearn", reason="the extra `samples` is not installed")
MAKERS = {"digits": digit_files, "tones": tone_files, "topics": topic_files, "mixed": mixed_files}
RECORDS = {"digits": 1797, "tones": 240}


@pytest.fixture(scope="module", params=sorted(MAKERS))
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Inventory]]:
    """A bundled dataset's name and inventory, of raw files in a folder of its own."""
    name = request.param
    root = tmp_path_factory.mktemp(name)
    files = MAKERS[name]()
    assert write_folder(root / "raw" / name, files) == sum(map(len, files.values()))
    os.environ["TFR_DATA"] = str(root / "data")
    try:
        found = load_component(name)
        assert found is not None
        source = found[1].source
    finally:
        del os.environ["TFR_DATA"]
    said = str(current_project().root)
    moved = seen_from(root, _moved(source, said, str(root)))
    yield name, take_inventory(moved, root / "landing")


def _moved(source, old: str, new: str):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    def walk(value):  # type: ignore[no-untyped-def]
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        return value.replace(old, new) if isinstance(value, str) else value

    return replace(source, path=source.path and source.path.replace(old, new), options=walk(dict(source.options)))


def test_every_file_becomes_a_record(sample: tuple[str, Inventory]) -> None:
    name, inventory = sample
    expected = RECORDS.get(name, len(topic_files()))
    assert inventory.rows == expected and inventory.skipped == 0
    assert sum(inventory.splits.values()) == expected
    wanted = {"digits": "image/encoded", "tones": "audio/encoded", "topics": "text", "mixed": "frequency"}
    assert wanted[name] in inventory.schema.names


def test_what_is_shown_is_small_and_can_be_looked_at(sample: tuple[str, Inventory]) -> None:
    name, inventory = sample
    shown = previews(inventory, 0, inventory.rows)
    wanted = {
        "digits": {"image", "image/classes"},
        "tones": {"audio", "audio/classes"},
        "topics": {"text"},
        "mixed": {"image", "audio", "text"},
    }
    assert set(shown) == wanted[name]
    for key, value in shown.items():
        if key == "text":
            assert value.value.startswith("    The ")
            continue
        png = base64.b64decode(value.value.partition("base64,")[2].rstrip(")"))
        assert len(png) < 100_000
        Image.open(io.BytesIO(png)).verify()


def test_a_folder_is_made_once_and_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    assert write_folder(folder, {"a/b.txt": b"one", "c.txt": b""}) == 3
    before = (folder / "a/b.txt").stat().st_ino
    write_folder(folder, {"a/b.txt": b"one", "c.txt": b""})
    assert (folder / "a/b.txt").stat().st_ino == before
    write_folder(folder, {"d.txt": b"two"})
    assert [str(path.relative_to(folder)) for path in folder.rglob("*")] == ["d.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["files"]
