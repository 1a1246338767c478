"""What git leaves in place of a file that git-LFS keeps is called so, whatever kind of file is expected."""

from pathlib import Path
from typing import Any

import pytest

from tests.sources.kind_records import inventory_of
from tests.sources.media_files import encoded, image, write
from tfr_assets.errors import SourceError

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123456\n"
SAYS = r"is a git-LFS pointer, not the file itself: run `git lfs pull`"
TABLES = ("parquet", "arrow", "csv", "csv.gz", "csv.zip", "csv.zst", "jsonl", "jsonl.xz")
KINDS: dict[str, tuple[str, Any]] = {
    **{ending: (f"data.{ending}", lambda path: f"{path}/*") for ending in TABLES},
    "image": ("cats/1.jpg", lambda path: {"images": path}),
    "recording": ("cats/1.wav", lambda path: {"audio": path}),
    "document": ("cats/1.txt", lambda path: {"text": path}),
    "lines": ("1.txt", lambda path: {"text": {"path": path, "per": "line"}}),
    "labels": ("labels.csv", lambda path: {"images": {"path": f"{path}/*.png", "labels": _labels(path)}}),
}


def _labels(path: str) -> dict[str, str]:
    return {"table": f"{path}/labels.csv", "file": "file", "label": "label"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_pointer_is_called_so(kind: str, tmp_path: Path) -> None:
    name, said = KINDS[kind]
    folder = write(tmp_path / "data", {name: POINTER})
    if kind == "labels":
        write(folder, {"1.png": encoded(image(), "PNG")})
    with pytest.raises(SourceError, match=f"{name.rpartition('/')[2]}: .*{SAYS}"):
        inventory_of(said(str(folder)), tmp_path)


def test_a_pointer_among_images_can_be_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"1.png": encoded(image(), "PNG"), "2.png": POINTER})
    inventory = inventory_of({"images": {"path": str(folder), "on_error": "skip"}}, tmp_path)
    assert (inventory.rows, inventory.skipped) == (1, 1)
    assert "git lfs pull" in inventory.first_skipped[0][1]
