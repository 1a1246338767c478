"""The unit of a time is the one that the data has, whatever holds it on the way."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfr_assets
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.sources import Inventory, Source, parse_source, read_rows, take_inventory

MOMENT = datetime(2020, 1, 2, 3, 4, 5)
TYPES = {
    **{f"timestamp {unit}": pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"UTC {unit}": pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us", "ns")},
    **{f"duration {unit}": pa.duration(unit) for unit in ("s", "ms", "us", "ns")},
    **{"time s": pa.time32("s"), "time ms": pa.time32("ms"), "time us": pa.time64("us"), "time ns": pa.time64("ns")},
    **{"days": pa.date32(), "days in ms": pa.date64()},
}


def value(type_: pa.DataType) -> Any:
    if pa.types.is_date(type_):
        return date(2020, 1, 2)
    if pa.types.is_time(type_):
        return time(3, 4, 5)
    if pa.types.is_duration(type_):
        return timedelta(seconds=5)
    return MOMENT.replace(tzinfo=UTC if type_.tz else None)


FLAT = {name: pa.array([value(type_), None], type_) for name, type_ in TYPES.items()}
NESTED = {
    "list": pa.array([[MOMENT], None], pa.list_(pa.timestamp("s"))),
    "large list": pa.array([[MOMENT], []], pa.large_list(pa.timestamp("s"))),
    "lists of one length": pa.array([[MOMENT], [MOMENT]], pa.list_(pa.timestamp("s"), 1)),
    "struct": pa.array(
        [{"a": time(1, 2, 3), "b": [date(2020, 1, 2)]}, None],
        pa.struct([("a", pa.time32("s")), ("b", pa.list_(pa.date64()))]),
    ),
}
TABLE = pa.table(FLAT | NESTED)


def stream(path: Path, new: Callable[..., Any]) -> None:
    with new(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE)


def taken(how: str, folder: Path, module: Callable[[str], str]) -> Inventory:
    seed = None
    if how == "callable":
        pq.write_table(TABLE.slice(0, 0), folder / "unused.parquet")
        stream(folder / "rows.arrow", pa.ipc.new_file)
        code = (
            f"import pyarrow as pa\ndef rows():\n    return pa.ipc.open_file({str(folder / 'rows.arrow')!r}).read_all()"
        )
        return take_inventory(parse_source({"callable": f"{module(code)}:rows"}), folder / "landing")
    if how == "parquet":
        pq.write_table(TABLE, folder / "a.parquet")
    elif how == "parquet, landed":
        pq.write_table(TABLE, folder / "a.parquet")
        seed = 1
    else:
        stream(folder / "a.arrow", pa.ipc.new_file if how == "file" else pa.ipc.new_stream)
    path = folder / ("a.parquet" if "parquet" in how else "a.arrow")
    return take_inventory(Source(path=str(path), shuffle_seed=seed), folder / "landing")


@pytest.mark.parametrize("how", ["file", "stream", "parquet", "parquet, landed", "callable"])
def test_units_of_arrow_are_kept(how: str, tmp_path: Path, module: Callable[[str], str]) -> None:
    inventory = taken(how, tmp_path, module)
    assert inventory.schema.equals(TABLE.schema), how
    rows = pa.Table.from_batches(read_rows(inventory, 0, 2), inventory.schema)
    assert sorted(map(str, rows.to_pylist())) == sorted(map(str, TABLE.to_pylist()))


def test_write_keeps_them_too(tmp_path: Path) -> None:
    tfr_assets.write(TABLE.select(list(FLAT)), tmp_path / "a.tfrecord")
    spec = Manifest.load(tmp_path / "a.tfrecord").features
    assert spec == derive_spec(pa.schema([TABLE.schema.field(name) for name in FLAT]), dict.fromkeys(FLAT, 1))


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", "t\n2020-01-02 03:04:05\n"), ("a.jsonl", '{"t":"2020-01-02T03:04:05"}\n')],
)
def test_times_in_text_count_milliseconds_unless_a_type_is_named(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    for unit in ("ms", "s", "us", "ns"):
        options = {} if unit == "ms" else {"column_types": {"t": f"timestamp[{unit}]"}}
        inventory = take_inventory(Source(path=str(tmp_path / name), options=options), tmp_path / "landing")
        assert inventory.schema.field("t").type == pa.timestamp(unit)
        assert next(read_rows(inventory, 0, 1))["t"].to_pylist() == [MOMENT]
