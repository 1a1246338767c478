"""What is in a source's folder and is not taken is told of, whatever the kind of source."""

from pathlib import Path
from typing import Any

import pytest

from tests.sources.kind_records import inventory_of
from tests.sources.media_files import encoded, image, write
from tfr_assets.errors import ConfigError
from tfr_assets.sources import SKIPPED, Inventory

FILES = {
    "table": ({"1.csv": b"a\n1\n", "2.csv": b"a\n2\n"}, lambda path: path),
    "images": ({"1.png": encoded(image(), "PNG")}, lambda path: {"images": path}),
    "documents": ({"1.txt": b"x"}, lambda path: {"text": path}),
    "lines": ({"1.txt": b"x"}, lambda path: {"text": {"path": path, "per": "line"}}),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_of_other_endings_are_told_of(kind: str, tmp_path: Path) -> None:
    files, said = FILES[kind]
    folder = write(tmp_path / "data", files)
    landing = tmp_path / "landing"
    from tfr_assets.sources import parse_source, take_inventory

    source = parse_source(said(str(folder)))
    assert take_inventory(source, landing).warnings == ()
    assert not (landing / SKIPPED).exists()
    write(folder, {"more/3.xlsx": b"PK", "4.m4a": b"", "5.M4A": b""})
    inventory = take_inventory(source, landing)
    assert inventory.rows == len(files)
    assert len(inventory.warnings) == 1
    assert "3 files in the folder are ignored: 2 ending in .m4a, 1 ending in .xlsx" in inventory.warnings[0]
    assert Inventory.from_json(inventory.to_json()).warnings == inventory.warnings
    listed = [line.split("\t")[0] for line in (landing / SKIPPED).read_text().splitlines()]
    assert sorted(Path(each).name for each in listed) == ["3.xlsx", "4.m4a", "5.M4A"]
    for name in ("more/3.xlsx", "4.m4a", "5.M4A"):
        (folder / name).unlink()
    assert take_inventory(source, landing).warnings == ()
    assert not (landing / SKIPPED).exists()


def test_parts_that_share_a_folder_do_not_tell_of_each_other(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"1.png": encoded(image(), "PNG"), "1.txt": b"x"})
    parts: list[Any] = [
        {"images": {"path": str(folder), "labels": "none"}},
        {"text": {"path": str(folder), "labels": "none"}},
    ]
    assert inventory_of({"mixed": {"key": "id", "parts": parts}}, tmp_path).warnings == ()
    other = write(tmp_path / "other", {"1.txt": b"x", "2.md5": b""})
    parts[1] = {"text": {"path": str(other), "labels": "none"}}
    told = inventory_of({"mixed": {"key": "id", "parts": parts}}, tmp_path).warnings
    assert len(told) == 2 and "1 ending in .txt" in told[0] and "1 ending in .md5" in told[1]


@pytest.mark.parametrize("kind", ["images", "documents", "lines"])
def test_links_out_of_the_folder_are_followed_only_when_asked(kind: str, tmp_path: Path) -> None:
    files, said = FILES[kind]
    folder = write(tmp_path / "data", files)
    (name,) = files
    outside = write(tmp_path / "outside", files) / name
    (folder / f"2{outside.suffix}").symlink_to(outside)
    given = said(str(folder))
    inventory = inventory_of(given, tmp_path)
    assert (inventory.rows, inventory.file_count) == (1, 1)
    assert "1 link in the folder is ignored" in inventory.warnings[0]
    (name,) = given
    options = given[name] if isinstance(given[name], dict) else {"path": given[name]}
    asked = inventory_of({name: {**options, "follow_links": True}}, tmp_path)
    assert (asked.rows, asked.file_count, asked.warnings) == (2, 2, ())
    assert asked.fingerprint != inventory.fingerprint


@pytest.mark.parametrize("kind", ["images", "audio", "text"])
def test_following_links_is_yes_or_no(kind: str) -> None:
    from tfr_assets.sources import parse_source

    with pytest.raises(ConfigError, match=rf"source\.{kind}\.follow_links: expected true or false, found 'yes'"):
        parse_source({kind: {"path": "x", "follow_links": "yes"}})
    if kind != "audio":
        with pytest.raises(ConfigError, match=rf"source\.{kind}\.follow_links: has no meaning"):
            parse_source({kind: {"path": "x.csv", "column": "a", "follow_links": True}})


def test_parts_that_share_a_folder_tell_of_links_nevertheless(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"1.png": encoded(image(), "PNG"), "1.txt": b"x"})
    (folder / "2.txt").symlink_to(write(tmp_path / "outside", {"2.txt": b"x"}) / "2.txt")
    kinds: list[Any] = [{kind: {"path": str(folder), "labels": "none"}} for kind in ("images", "text")]
    (told,) = inventory_of({"mixed": {"key": "id", "parts": kinds}}, tmp_path).warnings
    assert "1 link in the folder is ignored" in told
