"""Records of several parts: real files of every kind, joined."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.sources.kind_records import inventory_of, records, records_of
from tests.sources.media_files import encoded, image, write
from tests.sources.recordings import tone, wav16
from tfr_assets.errors import ConfigError, SourceChanged, SourceError
from tfr_assets.sources import Splits, parse_source, read_rows
from tfr_assets.sources.landing import join as join_module

NAMES = ("10", "2", "007")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder with parts: documents, more documents, a table."""
    folder = tmp_path / "raw"
    write(folder / "captions", {f"{name}.txt": f"caption {name}".encode() for name in NAMES})
    write(folder / "notes", {f"deep/{name}.md": f"note {name}".encode() for name in NAMES})
    pd.DataFrame({"id": NAMES, "price": [1.5, None, 3.0]}).to_csv(folder / "facts.csv", index=False)
    return folder


def parts(raw: Path, **options: Any) -> dict[str, Any]:
    notes = {"text": {"path": str(raw / "notes"), "labels": "none"}, "name": "note"}
    said = [str(raw / "facts.csv"), {"text": str(raw / "captions")}, notes]
    return {"mixed": {"key": "id", "parts": said, **options}}


def test_a_record_has_the_columns_of_all_parts(raw: Path, tmp_path: Path) -> None:
    inventory = inventory_of(parts(raw), tmp_path)
    assert records_of(inventory).to_pylist() == [
        {
            "id": name,
            "price": price,
            "text": f"caption {name}",
            "text/filename": f"{name}.txt",
            "note/text": f"note {name}",
            "note/text/filename": f"deep/{name}.md",
        }
        for name, price in zip(NAMES, [1.5, None, 3.0], strict=True)
    ]
    assert inventory.null_counts == {name: int(name == "price") for name in inventory.schema.names}
    assert inventory.file_count == 7
    assert inventory.bytes == sum(path.stat().st_size for path in raw.rglob("*.*"))


def test_the_first_part_tells_the_order(raw: Path, tmp_path: Path) -> None:
    said = parts(raw)
    said["mixed"]["parts"] = said["mixed"]["parts"][::-1]
    made = records(said, tmp_path)
    assert [record["id"] for record in made] == ["2", "007", "10"]
    assert list(made[0]) == ["id", "note/text", "note/text/filename", "text", "text/filename", "price"]


def test_every_kind_can_be_a_part(raw: Path, tmp_path: Path, module: Callable[[str], str]) -> None:
    write(raw / "images", {f"cat/{name}.png": encoded(image(seed=int(name)), "PNG") for name in NAMES})
    write(raw / "masks", {f"{name}.png": encoded(image("L", 3, 4, int(name)), "PNG") for name in NAMES})
    write(raw / "sounds", {f"{name}.wav": wav16(tone(int(name) * 100)) for name in NAMES})
    pq.write_table(pa.table({"photo": NAMES, "said": ["ten", "two", "seven"]}), raw / "said.parquet")
    function = module(f"def rows(): return [{{'id': name, 'x': len(name)}} for name in {NAMES}]") + ":rows"
    said = [
        {"images": str(raw / "images")},
        {"images": {"path": str(raw / "masks"), "size": [3, 4], "format": "raw", "channels": 1}, "name": "mask"},
        {"audio": str(raw / "sounds")},
        {"text": {"path": str(raw / "said.parquet"), "column": "said"}, "key": "photo"},
        {"callable": function},
        {"table": str(raw / "facts.csv")},
    ]
    inventory = inventory_of({"mixed": {"key": "id", "parts": said}}, tmp_path)
    made = records_of(inventory)
    assert made["id"].to_pylist() == ["2", "007", "10"]
    assert made["text"].to_pylist() == ["two", "seven", "ten"]
    assert made["x"].to_pylist() == [1, 3, 2]
    assert made["price"].to_pylist() == [None, 3.0, 1.5]
    for name, content, mask, sound in zip(
        ("2", "007", "10"),
        made["image/encoded"].to_pylist(),
        made["mask/image/pixels"].combine_chunks().to_numpy_ndarray(),
        made["audio/encoded"].to_pylist(),
        strict=True,
    ):
        assert content == (raw / "images" / "cat" / f"{name}.png").read_bytes()
        assert (mask[..., 0] == image("L", 3, 4, int(name))).all()
        assert sound == (raw / "sounds" / f"{name}.wav").read_bytes()
    assert inventory.classes == {"image/class/label": ("cat",)}
    assert inventory.null_counts == {name: made[name].null_count for name in made.column_names}
    some = list(read_rows(inventory, 1, 2, ["audio/format", "id"]))
    assert [batch.to_pydict() for batch in some] == [{"audio/format": ["wav"], "id": ["007"]}]


def test_classes_carry_the_names_of_their_parts(raw: Path, tmp_path: Path) -> None:
    for side in ("left", "right"):
        write(raw / side, {f"{side}{number % 2}/{number}.txt": b"" for number in range(4)})
    said = [{"text": str(raw / side), "name": side} for side in ("left", "right")]
    inventory = inventory_of({"mixed": {"parts": said}}, tmp_path)
    assert inventory.classes == {f"{side}/text/class/label": (f"{side}0", f"{side}1") for side in ("left", "right")}
    made = records_of(inventory).to_pydict()
    assert made["key"] == ["0", "2", "1", "3"]
    assert made["left/text/class/label"] == made["right/text/class/label"] == [0, 0, 1, 1]
    assert made["right/text/class/text"] == ["right0", "right0", "right1", "right1"]


@pytest.mark.parametrize("memory", [1000, 50_000, 64 << 20])
def test_memory_does_not_matter(memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"n{number}" for number in range(300)]
    write(tmp_path / "raw" / "captions", {f"{name}.txt": name.encode() for name in names})
    random.Random(0).shuffle(names)
    pq.write_table(pa.table({"name": names, "value": [[name] for name in names]}), tmp_path / "raw" / "a.parquet")
    monkeypatch.setattr(join_module.join, "__defaults__", (memory,))
    said = [{"table": str(tmp_path / "raw" / "a.parquet")}, {"text": str(tmp_path / "raw" / "captions")}]
    made = records({"mixed": {"key": "name", "parts": said}}, tmp_path)
    assert [record["name"] for record in made] == names
    assert all(record["value"] == [record["text"]] == [record["name"]] for record in made)


def test_keys_that_are_not_everywhere(raw: Path, tmp_path: Path) -> None:
    (raw / "captions" / "2.txt").unlink()
    write(raw / "captions", {f"x{number}.txt": b"" for number in range(20)})
    with pytest.raises(SourceError) as told:
        records(parts(raw), tmp_path)
    assert str(told.value) == (
        f"source.mixed: keys that are not in all parts: 21. '2' is not in parts[1] (text {raw}/captions); "
        + "; ".join(
            f"'x{number}' is not in parts[0] (table {raw}/facts.csv) nor in parts[2] (text {raw}/notes)"
            for number in range(4)
        )
        + "; and 16 more. Complete the parts, or set `missing: skip` to go on without these keys."
    )
    inventory = inventory_of(parts(raw, missing="skip"), tmp_path)
    assert records_of(inventory)["id"].to_pylist() == ["10", "007"]
    assert inventory.skipped == 21
    assert ("2", f"is not in parts[1] (text {raw}/captions)") in inventory.first_skipped


def test_many_keys_that_are_not_everywhere(tmp_path: Path, raw: Path) -> None:
    pq.write_table(pa.table({"id": [f"y{number}" for number in range(3000)]}), raw / "many.parquet")
    said = [str(raw / "many.parquet"), {"text": str(raw / "captions")}]
    with pytest.raises(
        SourceError, match=r"in all parts: 3003\. '2' .*; '007' .*; '10' .*; 'y0' .*; 'y1' .*; and 2998 more"
    ):
        records({"mixed": {"key": "id", "parts": said}}, tmp_path)
    with pytest.raises(
        SourceError, match=r"no file of it can become a record; 3003 were skipped\. The first, .*: is not in parts"
    ):
        records({"mixed": {"key": "id", "parts": said, "missing": "skip"}}, tmp_path)


def test_files_that_are_skipped_lack_their_keys(raw: Path, tmp_path: Path) -> None:
    (raw / "captions" / "2.txt").write_bytes(b"\xff")
    said = parts(raw, missing="skip")
    said["mixed"]["parts"][1] = {"text": {"path": str(raw / "captions"), "on_error": "skip"}}
    inventory = inventory_of(said, tmp_path)
    assert records_of(inventory)["id"].to_pylist() == ["10", "007"]
    assert sorted(file for file, _ in inventory.first_skipped) == ["2", "2.txt"]
    assert inventory.skipped == 2


def test_keys_that_are_there_twice(raw: Path, tmp_path: Path) -> None:
    write(raw / "notes", {"other/2.md": b""})
    with pytest.raises(
        SourceError, match=r"parts\[2\] \(text .*notes\): deep/2\.md and other/2\.md both have the key '2'"
    ):
        records(parts(raw), tmp_path)
    (raw / "notes" / "other" / "2.md").unlink()
    pd.DataFrame({"id": [*NAMES, "2"]}).to_csv(raw / "facts.csv", index=False)
    with pytest.raises(SourceError, match=r"parts\[0\] .*: facts\.csv:2 and facts\.csv:4 both have the key '2'"):
        records(parts(raw), tmp_path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"id": ["2", None]}, r"parts\[0\] .*a\.parquet:2: has no key in column 'id'\. Every row needs one"),
        ({"id": [0.5, 1.5]}, r"parts\[0\] .*: column 'id' is double\. Keys are texts or whole numbers"),
        ({"ix": ["2"]}, r"a\.parquet: there is no column 'id'\. There are: ix\."),
        ({"id": ["2"], ".x": [1]}, r"parts\[0\] .*: column '\.x' begins with a dot"),
        ({"id": pa.nulls(2)}, r"parts\[0\] .*a\.parquet:1: has no key"),
    ],
)
def test_a_table_that_has_no_keys(table: dict[str, Any], message: str, raw: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table(table), raw / "a.parquet")
    said = [str(raw / "a.parquet"), {"text": str(raw / "captions")}]
    with pytest.raises(SourceError, match=message):
        records({"mixed": {"key": "id", "parts": said}}, tmp_path)


def test_whole_numbers_are_keys_too(raw: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([2, 10], pa.uint8()), "v": [1, 2]}), raw / "a.parquet")
    said = [str(raw / "a.parquet"), {"text": str(raw / "captions")}]
    made = records({"mixed": {"key": "id", "parts": said, "missing": "skip"}}, tmp_path)
    assert [(record["id"], record["v"]) for record in made] == [("2", 1), ("10", 2)]


@pytest.mark.parametrize("column", ["text", "text/filename", "id2"])
def test_columns_of_one_name(column: str, raw: Path, tmp_path: Path) -> None:
    pd.DataFrame({"id": NAMES, column: [1, 2, 3]}).to_csv(raw / "facts.csv", index=False)
    said = parts(raw)
    said["mixed"]["parts"][0] = {"table": str(raw / "facts.csv"), "key": "id"}
    said["mixed"]["key"] = "id2"
    owner = "`key`" if column == "id2" else r"parts\[0\] \(table .*\)"
    with pytest.raises(
        ConfigError, match=rf"mixed\.parts: {owner} and parts.* both give a column '{column}'\. Set `name"
    ):
        records(said, tmp_path)
    said["mixed"]["parts"][0]["name"] = "fact"
    assert records(said, tmp_path)[1][f"fact/{column}"] == 2


def test_splits_by_folder(raw: Path, tmp_path: Path) -> None:
    for name, split in zip(NAMES, ("test", "train", "train"), strict=True):
        write(raw / "sides" / split, {f"{name}.txt": b"", f"class/{name}.md": b""})
    texts = [
        {"text": {"path": str(raw / "sides"), "endings": [ending], "labels": "none"}} for ending in (".txt", ".md")
    ]
    said = {"mixed": {"key": "id", "parts": [str(raw / "facts.csv"), texts[0], {**texts[1], "name": "md"}]}}
    splits = Splits(folder=("train", "test"))
    inventory = inventory_of(said, tmp_path, splits)
    assert inventory.splits == {"train": 2, "test": 1}
    assert records_of(inventory)["id"].to_pylist() == ["2", "007", "10"]
    (raw / "sides" / "train" / "2.txt").rename(raw / "sides" / "test" / "2.txt")
    with pytest.raises(SourceError, match=r"'2' lies in the folder test in parts\[1\] .*, but in train in parts\[2\]"):
        inventory_of(said, tmp_path, splits)
    tables = {"mixed": {"key": "id", "parts": [str(raw / "facts.csv"), {"table": str(raw / "facts.csv"), "name": "b"}]}}
    with pytest.raises(ConfigError, match=r"splits\.folder: no part of the mixed source is files"):
        inventory_of(tables, tmp_path, splits)


def test_splits_by_share_go_by_key(raw: Path, tmp_path: Path) -> None:
    shares = Splits({"a": 0.5, "b": 0.5})
    first = inventory_of(parts(raw), tmp_path, shares)
    said = parts(raw)
    said["mixed"]["parts"].reverse()
    second = inventory_of(said, tmp_path, shares)
    count = first.splits["a"]
    assert set(records_of(first)["id"].to_pylist()[:count]) == set(records_of(second)["id"].to_pylist()[:count])


def test_a_part_that_changes(raw: Path, tmp_path: Path) -> None:
    inventory = inventory_of(parts(raw), tmp_path)
    (raw / "captions" / "2.txt").touch()
    assert inventory_of(parts(raw), tmp_path).fingerprint == inventory.fingerprint
    (raw / "captions" / "2.txt").write_text("CAPTION 2")
    assert inventory_of(parts(raw), tmp_path).fingerprint != inventory.fingerprint
    with pytest.raises(SourceChanged, match=r"captions/2\.txt"):
        records_of(inventory)


def test_a_tokenizer_of_a_part(raw: Path, tmp_path: Path, module: Callable[[str], str]) -> None:
    said = parts(raw)
    name = f"{module('def f(text): return text.split()')}:f"
    said["mixed"]["parts"][2]["text"]["tokenizer"] = name
    assert [record["note/text/tokens"] for record in records(said, tmp_path)] == [["note", name] for name in NAMES]


TWO = ["a.csv", {"text": "b/"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"parts: missing"),
        ({"parts": ["a.csv"]}, r"parts: expected a list of two or more sources; found \['a\.csv'\]"),
        ({"parts": {"text": "b/"}}, r"parts: expected a list of two or more sources"),
        ({"parts": TWO, "keys": "a"}, r"keys: not a setting \(did you mean 'key'\?\)"),
        ({"parts": TWO, "key": 3}, r"key: expected a name that does not begin with a dot; found 3"),
        ({"parts": TWO, "key": ".file"}, r"key: expected a name that does not begin with a dot; found '\.file'"),
        ({"parts": TWO, "missing": "ignore"}, r"missing: 'ignore' is not known"),
        ({"parts": ["a.csv", 3]}, r"parts\[1\]: expected a path"),
        ({"parts": ["a.csv", {"txt": "b/"}]}, r"parts\[1\]\.txt: not a setting"),
        (
            {"parts": ["a.csv", {"images": {"path": "b", "sizes": 3}}]},
            r"parts\[1\]\.images\.sizes: not a setting",
        ),
        ({"parts": ["a.csv", {"audio": {"path": "b", "rate": "x"}}]}, r"parts\[1\]\.audio\.rate: "),
        ({"parts": ["a.csv", {"images": {"size": [1, 2]}}]}, r"parts\[1\]\.images\.path: missing"),
        ({"parts": ["a.csv", {"path": "b.csv", "format": "xls"}]}, r"parts\[1\]\.format: 'xls' is not known"),
        ({"parts": ["a.csv", {"table": {"path": "b", "frmat": "csv"}}]}, r"parts\[1\]\.table\.frmat: not a setting"),
        ({"parts": ["a.csv", {"mixed": {"parts": TWO}}]}, r"parts\[1\]\.mixed: a part cannot be mixed itself"),
        ({"parts": ["a.csv", {"text": "b/", "key": "id"}]}, r"parts\[1\]\.key: has no meaning for files"),
        ({"parts": ["a.csv", {"text": "b/", "name": ".a"}]}, r"parts\[1\]\.name: expected a name"),
        ({"parts": ["a.csv", {"text": {"path": "b", "per": "line"}}]}, r"parts\[1\]\.text\.per: lines have no keys"),
    ],
)
def test_invalid_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^source\.mixed\.{message}"):
        parse_source({"mixed": options})
