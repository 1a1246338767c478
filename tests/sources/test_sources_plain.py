"""However Arrow holds values, they are read as the same values of a plain type."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfr_assets
from tfr_assets.errors import SourceError
from tfr_assets.sources import Source, preview, take_inventory
from tfr_assets.sources.tables.plain_arrays import plain_array, plain_type

VIEWS = pa.array(["a", None, "longer than twelve bytes", "a"], pa.string_view())


def dictionary(values: pa.Array, *indices: int | None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.uint32()), values)


CATEGORIES = dictionary(VIEWS, 0, 2, None, 1)  # what Polars gives of Categorical and Enum
OFFSETS = pa.array([0, 2, None, 3, 4])
ENCODED: dict[str, pa.Array] = {
    "views": VIEWS,
    "binary views": pa.array([b"a", None], pa.binary_view()),
    "categories": CATEGORIES,
    "categories of bytes": dictionary(pa.array([b"a"], pa.binary_view()), 0, None),
    "categories of lists": dictionary(pa.array([[1, 2], None]), 0, None, 1),
    "categories of decimals": dictionary(pa.array(["1.5"]).cast(pa.decimal128(20, 2)), 0, None),
    "categories of nothing": dictionary(pa.nulls(1), 0, None),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays([2, 3, 9], pa.array(["a", None, "b"])),
    "list views": pa.ListViewArray.from_arrays(pa.array([2, 0, None, 0]), pa.array([1, 2, 0, 1]), pa.array([1, 2, 3])),
    "large list views": pa.array([[1, 2], None, [], [3]], pa.large_list_view(pa.int32())),
    "list views of views": pa.array([["a"], None], pa.list_view(pa.string_view())),
    "lists of categories": pa.ListArray.from_arrays(OFFSETS, CATEGORIES),
    "lists of one length of categories": pa.FixedSizeListArray.from_arrays(CATEGORIES, 2),
    "structs of categories": pa.StructArray.from_arrays(
        [CATEGORIES, pa.array([1, 2, 3, None])], ["c", "n"], mask=pa.array([False, True, False, False])
    ),
}


def stored(array: pa.Array, path: Path, new: Callable[..., Any]) -> Path:
    table = pa.table({"c": array})
    with new(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("name", ENCODED)
def test_values_stay_as_they_are(name: str) -> None:
    array = ENCODED[name]
    for start in range(len(array)):
        part = array[start:]
        plain = plain_array(part, plain_type(part.type))
        plain.validate(full=True)
        assert plain.type == plain_type(array.type) == plain_type(plain.type)
        assert plain.to_pylist() == part.to_pylist()


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_files_of_such_values_are_read(name: str, new: Callable[..., Any], tmp_path: Path, landing: Path) -> None:
    array = ENCODED[name]
    inventory = take_inventory(Source(path=str(stored(array, tmp_path / "a.arrow", new))), landing)
    assert preview(inventory)["c"].to_pylist() == array.to_pylist()


@pytest.mark.parametrize("name", ["categories", "list views", "run-end encoded"])
def test_such_values_are_written(name: str, tmp_path: Path) -> None:
    array = ENCODED[name]
    tfr_assets.write({"c": array}, tmp_path / "encoded.tfrecord")
    tfr_assets.write({"c": plain_array(array, plain_type(array.type))}, tmp_path / "plain.tfrecord")
    assert (tmp_path / "encoded.tfrecord").read_bytes() == (tmp_path / "plain.tfrecord").read_bytes()


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_a_type_that_arrow_for_python_lacks_is_told_of(new: Callable[..., Any], tmp_path: Path, landing: Path) -> None:
    path = stored(pa.array([(1, 2, 3)], pa.month_day_nano_interval()), tmp_path / "a.arrow", new)
    content = path.read_bytes()
    unit = b"\x02\x00"  # MONTH_DAY_NANO; of the table of the type, the only field
    at = [i for i in range(len(content) - 1) if content[i : i + 2] == unit]
    months = 0
    for place in at:  # as Java writes intervals of months, which pyarrow has no class for
        path.write_bytes(content[:place] + b"\x00\x00" + content[place + 2 :])
        try:
            take_inventory(Source(path=str(path)), landing)
        except SourceError as error:
            months += "column 'c'" in str(error) and "pyarrow" in str(error)
    assert months
