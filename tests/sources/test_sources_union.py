"""Files whose columns differ: refused with the remedy, or, with `columns: union`, null where a file has none."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.sources import Inventory, Source, parse_source, read_rows, take_inventory

DAYS = [
    pa.table({"id": [1, 2], "a": ["x", "y"]}),
    pa.table({"b": [1.5, 2.5], "id": [3, 4], "a": ["z", "w"]}),
    pa.table({"id": [5], "c": [True]}),
]
ALL = [
    {"id": 1, "a": "x", "b": None, "c": None},
    {"id": 2, "a": "y", "b": None, "c": None},
    {"id": 3, "a": "z", "b": 1.5, "c": None},
    {"id": 4, "a": "w", "b": 2.5, "c": None},
    {"id": 5, "a": None, "b": None, "c": True},
]


def save_arrow(table: pa.Table, path: str, new: Callable[..., Any]) -> None:
    with new(path, table.schema) as writer:
        writer.write_table(table)


SAVE: dict[str, Callable[[pa.Table, str], None]] = {
    "parquet": pq.write_table,
    "csv": lambda table, path: pcsv.write_csv(table, path),
    "arrow": lambda table, path: save_arrow(table, path, pa.ipc.new_file),
    "feather": lambda table, path: save_arrow(table, path, pa.ipc.new_stream),
}


@pytest.fixture(params=SAVE)
def days(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for number, table in enumerate(DAYS):
        (tmp_path / "days").mkdir(exist_ok=True)
        SAVE[request.param](table, str(tmp_path / "days" / f"{number}.{request.param}"))
    return tmp_path / "days"


def rows(inventory: Inventory, columns: list[str] | None = None) -> list[dict[str, Any]]:
    return [row for batch in read_rows(inventory, 0, inventory.rows, columns) for row in batch.to_pylist()]


@pytest.mark.parametrize("seed", [None, 1])
def test_columns_of_all_files_are_taken(days: Path, seed: int | None, landing: Path) -> None:
    inventory = take_inventory(Source(path=str(days), columns="union", shuffle_seed=seed), landing)
    assert inventory.schema.names == ["id", "a", "b", "c"]
    if "csv" not in next(days.iterdir()).name:  # whose absent texts are no empty ones either
        assert inventory.null_counts == {"id": 0, "a": 1, "b": 3, "c": 4}
    assert sorted(rows(inventory), key=lambda row: row["id"]) == ALL
    some = sorted(rows(inventory, ["c", "b"]), key=str)
    assert some == sorted(({"c": row["c"], "b": row["b"]} for row in ALL), key=str)


def test_columns_that_differ_are_refused_with_the_remedy(days: Path, landing: Path) -> None:
    with pytest.raises(SourceError, match=r"1\.\w+: has a column 'b', which .*0\.\w+ has not.*`columns: union` under"):
        take_inventory(Source(path=str(days)), landing)


def test_the_option_is_part_of_the_fingerprint(tmp_path: Path, landing: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    sources = [parse_source({"path": str(tmp_path / "a.csv"), **more}) for more in ({}, {"columns": "union"})]
    assert len({take_inventory(source, landing).fingerprint for source in sources}) == 2
    for value in ("all", ["a"], 3):
        with pytest.raises(ConfigError, match=r"source\.columns: .* is not known.*Choose one of: same, union"):
            parse_source({"path": "a.csv", "columns": value})


def test_files_that_are_compressed_are_united_too(tmp_path: Path, landing: Path) -> None:
    for number, table in enumerate(DAYS):
        SAVE["arrow"](table, str(tmp_path / "day"))
        (tmp_path / f"{number}.arrow.gz").write_bytes(gzip.compress((tmp_path / "day").read_bytes()))
    assert rows(take_inventory(Source(path=str(tmp_path / "*.gz"), columns="union"), landing)) == ALL


@pytest.mark.parametrize("name", ["parquet", "arrow", "feather", "csv"])
@pytest.mark.parametrize("first", [True, False])
def test_a_column_without_any_value_in_one_file_has_the_type_of_the_others(
    name: str, first: bool, tmp_path: Path, landing: Path
) -> None:
    empty, full = pa.table({"n": [1], "v": pa.nulls(1)}), pa.table({"n": [2], "v": [7]})
    for number, table in enumerate([empty, full] if first else [full, empty]):
        SAVE[name](table, str(tmp_path / f"{number}.{name}"))
    inventory = take_inventory(Source(path=str(tmp_path / f"*.{name}")), landing)
    assert inventory.schema.field("v").type == pa.int64()
    assert inventory.null_counts["v"] == 1
    assert sorted(row["v"] or 0 for row in rows(inventory)) == [0, 7]


def test_types_that_differ_are_named_with_both_files(tmp_path: Path, landing: Path) -> None:
    for number, values in enumerate([pa.nulls(1), [1], ["x"]]):
        pq.write_table(pa.table({"v": values}), tmp_path / f"{number}.parquet")
    with pytest.raises(SourceError, match=r"2\.parquet: column 'v' is string, but int64 in .*1\.parquet.*convert one"):
        take_inventory(Source(path=str(tmp_path / "*.parquet"), columns="union"), landing)


def test_a_first_row_of_numbers_is_warned_of(tmp_path: Path, landing: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2.5,-3e4\n4,5,6\n")
    source = Source(path=str(tmp_path / "a.csv"))
    told = take_inventory(source, landing).warnings
    assert len(told) == 1
    assert "a.csv: the first row" in told[0] and "1, 2.5, -3e4" in told[0] and "column_names: […]" in told[0]
    assert take_inventory(source, landing).warnings == told  # of rows that are there already, too
    named = Source(path=str(tmp_path / "a.csv"), options={"column_names": ["1", "2", "3"]})
    assert take_inventory(named, landing).warnings == ()
    (tmp_path / "a.csv").write_text("1,x\n4,5\n")
    assert take_inventory(source, landing).warnings == ()


def test_a_header_that_lacks_names_is_refused_with_the_line_to_write(tmp_path: Path, landing: Path) -> None:
    (tmp_path / "a.csv").write_text(",a,b\n0,1,2\n")
    with pytest.raises(
        SourceError, match=r"column 1 of 3 has no name.*`options: \{column_names: \[index, a, b\], skip_"
    ):
        take_inventory(Source(path=str(tmp_path / "a.csv")), landing)
    options = {"column_names": ["index", "a", "b"], "skip_rows": 1}
    assert rows(take_inventory(Source(path=str(tmp_path / "a.csv"), options=options), landing)) == [
        {"index": 0, "a": 1, "b": 2}
    ]
