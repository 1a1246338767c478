"""Splits: which rows go where, that they stay there, and what is said where they cannot be assigned."""

import hashlib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.sources import Inventory, Source, Splits, parse_splits, read_rows, take_inventory

THIRDS = Splits({"train": 0.8, "validation": 0.1, "test": 0.1}, key="id")


def rows_of(inventory: Inventory) -> dict[str, list[dict[str, object]]]:
    found, first = {}, 0
    for split, count in inventory.splits.items():
        batches = read_rows(inventory, first, first + count)
        found[split] = pa.Table.from_batches(batches, inventory.schema).to_pylist()
        first += count
    assert first == inventory.rows
    return found


def write(path: Path, first: int, rows: int) -> Path:
    ids = range(first, first + rows)
    pq.write_table(
        pa.table({"id": [f"user {n}" for n in ids], "n": list(ids), "part": ["b" if n % 3 else "a" for n in ids]}), path
    )
    return path


@given(st.lists(st.text(), min_size=1, max_size=50), st.integers(1, 8))
def test_a_row_belongs_to_the_split_that_its_keys_hash_falls_into(keys: list[str], splits: int) -> None:
    shares = {f"s{number}": 1 / splits for number in range(splits)}
    found = Splits(shares, key="k").assign(pa.RecordBatch.from_pydict({"k": keys}), 0, "here")
    for key, split in zip(keys, found, strict=True):
        place = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") / 2**64
        assert split == min(int(place * splits), splits - 1) or abs(place * splits - round(place * splits)) < 1e-9


def test_new_rows_never_move_old_ones(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", 0, 500)
    before = rows_of(take_inventory(Source(path=str(tmp_path), splits=THIRDS), tmp_path.parent / f"{tmp_path.name}-a"))
    write(tmp_path / "0.parquet", 1000, 700)  # sorted before the old ones
    after = rows_of(take_inventory(Source(path=str(tmp_path), splits=THIRDS), tmp_path.parent / f"{tmp_path.name}-b"))
    for split, rows in before.items():
        assert [row for row in after[split] if row["n"] < 1000] == rows  # type: ignore[operator]
    assert sum(map(len, after.values())) == 1200
    assert all(rows for rows in before.values())


def test_shares_are_about_what_was_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", 0, 20_000)
    inventory = take_inventory(Source(path=str(path), splits=THIRDS), tmp_path / "raw")
    assert inventory.splits == pytest.approx({"train": 16_000, "validation": 2_000, "test": 2_000}, rel=0.06)
    assert list(inventory.splits) == ["train", "validation", "test"]


def test_a_whole_row_is_the_key_where_none_is_named(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 1, 2, None] * 50, "b": ["x", "x", "y", None] * 50})
    pq.write_table(table, tmp_path / "x.parquet")
    source = Source(path=str(tmp_path / "x.parquet"), splits=Splits({"train": 0.5, "test": 0.5}))
    rows = rows_of(take_inventory(source, tmp_path / "raw"))
    where = {str(row): split for split, found in rows.items() for row in found}
    assert Counter(str(row) for found in rows.values() for row in found) == Counter(map(str, table.to_pylist()))
    assert all(str(row) not in map(str, rows["test" if split == "train" else "train"]) for row, split in where.items())


def test_rows_keep_their_order_within_a_split_unless_they_are_shuffled(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", 0, 3000)
    plain = rows_of(take_inventory(Source(path=str(path), splits=THIRDS), tmp_path / "a"))
    assert all([row["n"] for row in rows] == sorted(row["n"] for row in rows) for rows in plain.values())  # type: ignore[type-var]
    shuffled = rows_of(take_inventory(Source(path=str(path), splits=THIRDS, shuffle_seed=1), tmp_path / "b"))
    for split, rows in shuffled.items():
        assert rows != plain[split]
        assert sorted(rows, key=lambda row: row["n"]) == plain[split]  # type: ignore[arg-type, return-value]


def test_a_column_names_the_split(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", 0, 10)
    source = Source(path=str(path), splits=Splits(column="part", values=("a", "b", "c")))
    rows = rows_of(take_inventory(source, tmp_path / "raw"))
    assert {split: [row["n"] for row in found] for split, found in rows.items()} == {
        "a": [0, 3, 6, 9],
        "b": [1, 2, 4, 5, 7, 8],
        "c": [],
    }


def test_a_folder_names_the_split(tmp_path: Path) -> None:
    for folder, first in (("test", 0), ("train", 10), ("train/more", 20)):
        (tmp_path / "in" / folder).mkdir(parents=True)
        write(tmp_path / "in" / folder / "x.parquet", first, 3)
    for path in (tmp_path / "in", tmp_path / "in" / "*" / "**" / "*.parquet"):
        source = Source(path=str(path), splits=Splits(folder=("train", "test")))
        rows = rows_of(take_inventory(source, tmp_path / "raw"))
        assert {split: sorted(row["n"] for row in found) for split, found in rows.items()} == {  # type: ignore[type-var]
            "train": [10, 11, 12, 20, 21, 22],
            "test": [0, 1, 2],
        }
        assert ".split" not in rows["train"][0]


@pytest.mark.parametrize(
    ("splits", "error", "message"),
    [
        (Splits({"a": 1.0}, key="nothing"), ConfigError, "splits.key: .* has no column 'nothing'. It has: id, n, part"),
        (Splits(column="part", values=("a",)), SourceError, "row 1: column 'part' names the split 'b', which is none"),
        (Splits(folder=("train",)), SourceError, "row 0: the folder names the split None, which is none of train"),
    ],
)  # fmt: skip
def test_rows_of_no_split_are_refused(splits: Splits, error: type, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", 0, 10)
    with pytest.raises(error, match=message):
        take_inventory(Source(path=str(path), splits=splits), tmp_path / "raw")
    assert not list((tmp_path / "raw").iterdir())


def test_rows_that_are_no_text_need_a_key(tmp_path: Path) -> None:
    pq.write_table(pa.table({"l": [[1], [2]]}), tmp_path / "x.parquet")
    with pytest.raises(
        ConfigError, match=r"column 'l' of type list.* name a column that distinguishes rows under `splits\.key`"
    ):
        take_inventory(Source(path=str(tmp_path / "x.parquet"), splits=Splits({"a": 1.0})), tmp_path / "raw")


def test_an_inventory_with_splits_is_saved_and_loaded(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", 0, 10)
    source = Source(path=str(path), splits=Splits(column="part", values=("a", "b")), shuffle_seed=3)
    inventory = take_inventory(source, tmp_path / "raw")
    inventory.save(tmp_path / "inventory.json")
    assert Inventory.load(tmp_path / "inventory.json") == inventory
    assert take_inventory(source, tmp_path / "raw") == inventory  # what was landed is found again


def test_other_splits_are_other_data(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", 0, 10)
    splits = [None, THIRDS, Splits({"train": 0.9, "test": 0.1}, key="id"), Splits(column="part", values=("a", "b"))]
    found = {take_inventory(Source(path=str(path), splits=s), tmp_path / "raw").fingerprint for s in splits}
    assert len(found) == 4


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"train": 0.8, "test": 0.2}, Splits({"train": 0.8, "test": 0.2})),
        ({"all": 1}, Splits({"all": 1.0})),
        ({"fractions": {"a": 0.5, "b": 0.5}, "key": "id"}, Splits({"a": 0.5, "b": 0.5}, key="id")),
        ({"column": "part", "values": ["a", "b"]}, Splits(column="part", values=("a", "b"))),
        ({"folder": ["a", "b"]}, Splits(folder=("a", "b"))),
    ],
)
def test_splits_are_parsed(said: object, found: Splits) -> None:
    assert parse_splits(said) == found


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([], "splits: expected shares such as"),
        ({}, "splits: say exactly one of"),
        ({"train": 0.5}, "splits: the shares sum to 0.5 instead of 1"),
        ({"train": 1.5, "test": -0.5}, "splits.train: expected a share above 0"),
        ({"train": "most"}, "splits.train: expected a share such as 0.1; found 'most'"),
        ({"tr ain": 1}, "split name 'tr ain': use letters"),
        ({"column": "part"}, "splits.values: missing"),
        ({"column": 3, "values": ["a"]}, "splits.column: expected the name of a column; found 3"),
        ({"column": "part", "values": ["a", "a"]}, "every split has a name of its own"),
        ({"column": "part", "folder": ["a"]}, "set exactly one of"),
        ({"folder": ["a"], "key": "id"}, "splits.key: has a meaning only with `fractions`"),
        ({"folder": "a"}, "splits.folder: expected a list of names"),
        ({"folder": ["a"], "keys": "id"}, r"splits.keys: not a setting \(did you mean 'key'\?\)"),
    ],
)
def test_invalid_splits_are_refused(said: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_splits(said)
