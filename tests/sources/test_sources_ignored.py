"""What is in a source's folder and is not taken is reported, whatever the kind of source."""

from pathlib import Path
from typing import Any

import pytest

from tests.sources.kind_records import inventory_of, records_of
from tests.sources.media_files import encoded, image, write
from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.sources import SKIPPED, Inventory, parse_source, take_inventory

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


@pytest.mark.parametrize("pattern", ["", "*", "**/*.csv"])
def test_links_out_of_a_folder_of_tables_are_followed_only_when_asked(pattern: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"1.csv": b"a\n1\n", "in/2.csv": b"a\n2\n"})
    outside = write(tmp_path / "data-outside", {"3.csv": b"a\n3\n"})
    (folder / "3.csv").symlink_to(outside / "3.csv")
    (folder / "more").symlink_to(outside)
    (folder / "in/4.csv").symlink_to("../1.csv")
    (folder / ".hidden").symlink_to(outside)
    path = str(folder / pattern)
    inside, all_of_them = ([1], [1, 3]) if pattern == "*" else ([1, 1, 2], [1, 1, 2, 3, 3])
    landing = tmp_path / "landing"
    inventory = take_inventory(parse_source(path), landing)
    assert sorted(records_of(inventory)["a"].to_pylist()) == inside
    listed = [line.split("\t") for line in (landing / SKIPPED).read_text().splitlines()]
    assert {Path(file).relative_to(folder).parts[0] for file, _ in listed} == {"3.csv", "more"}
    assert all("`follow_links: true` is not set" in reason for _, reason in listed)
    assert "2 links in the folder are ignored: they lead out of it; set `follow_links: true`" in inventory.warnings[0]
    asked = take_inventory(parse_source({"path": path, "follow_links": True}), landing)
    assert sorted(records_of(asked)["a"].to_pylist()) == all_of_them
    assert asked.warnings == () and Inventory.from_json(asked.to_json()) == asked
    for named in (folder / "3.csv", folder / "more", folder / "more" / "*.csv"):  # what the source names is followed
        assert records_of(take_inventory(parse_source(str(named)), landing))["a"].to_pylist() == [3]


def test_nothing_but_links_loops_and_closed_folders_are_told_of(tmp_path: Path) -> None:
    folder, landing = tmp_path / "data", tmp_path / "landing"
    folder.mkdir()
    (folder / "1.csv").symlink_to(write(tmp_path / "outside", {"1.csv": b"a\n1\n"}) / "1.csv")
    for path in (folder, folder / "*.csv"):
        with pytest.raises(SourceError, match=r"1 link in the folder is ignored: it leads out of it; set `follow_li"):
            take_inventory(parse_source(str(path)), landing)
    write(folder, {"a/2.csv": b"a\n1\n"})
    (folder / "a" / "up").symlink_to(folder)
    with pytest.raises(SourceError, match=r"a/up/: is a link to a folder that it lies in\. Remove the link"):
        take_inventory(parse_source(str(folder)), landing)


@pytest.mark.parametrize("hidden", [".git", ".Trash-0", "_tmp"])
def test_hidden_folders_of_tables_are_not_looked_into(hidden: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"1.csv": b"a\n1\n", f"{hidden}/part=2/2.csv": b"a\n2\n"})
    (folder / hidden / "up").symlink_to(folder)  # which is refused elsewhere
    inventory = take_inventory(parse_source(str(folder)), tmp_path / "landing")
    assert (inventory.rows, inventory.warnings) == (1, ())
    (folder / "_delta_log").mkdir()
    with pytest.raises(SourceError, match="is a Delta table"):
        take_inventory(parse_source(str(folder)), tmp_path / "landing")


def test_tables_among_parts_tell_of_links(tmp_path: Path) -> None:
    pictures = write(tmp_path / "images", {"1.png": encoded(image(), "PNG")})
    facts = write(tmp_path / "facts", {"1.csv": b"id,v\n1,2\n"})
    (facts / "2.csv").symlink_to(write(tmp_path / "outside", {"2.csv": b"id,v\n2,2\n"}) / "2.csv")
    parts: list[Any] = [{"images": {"path": str(pictures), "labels": "none"}}, {"table": str(facts)}]
    (told,) = inventory_of({"mixed": {"key": "id", "parts": parts}}, tmp_path).warnings
    assert "1 link in the folder is ignored" in told


def test_following_links_of_tables_is_yes_or_no() -> None:
    with pytest.raises(ConfigError, match=r"source\.follow_links: expected true or false; found 'yes'"):
        parse_source({"path": "x", "follow_links": "yes"})
    with pytest.raises(ConfigError, match=r"source\.follow_links: has no meaning for a callable"):
        parse_source({"callable": "a:b", "follow_links": True})


@pytest.mark.parametrize("kind", ["images", "audio", "text"])
def test_following_links_is_yes_or_no(kind: str) -> None:
    with pytest.raises(ConfigError, match=rf"source\.{kind}\.follow_links: expected true or false; found 'yes'"):
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
