"""The join, with pandas' merge as the oracle."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tfr_assets.errors import SourceError
from tfr_assets.sources.landing.join import Part, join

KEYS = st.lists(st.text("abé0", max_size=3), unique=True, max_size=40)


def part(keys: list[str], index: int, batch_rows: int) -> Part:
    """Returns rows with a number, a text of some length, and a name."""
    table = pa.table(
        {
            f"n{index}": pa.array([None if row % 5 == 4 else row for row in range(len(keys))], pa.int64()),
            ".key": pa.array(keys, pa.string()),
            f"t{index}": pa.array([key * row for row, key in enumerate(keys)], pa.large_string()),
            f".{index}": pa.array([f"row {row}" for row in range(len(keys))], pa.string()),
        }
    )
    batches = [pa.RecordBatch.from_pylist([], table.schema), *table.to_batches(batch_rows)]
    return Part(f"part {index}", f".{index}", table.schema, iter(batches))


def joined(parts: list[Part], folder: Path, memory: int) -> tuple[pa.Table, dict[str, list[int]]]:
    folder.mkdir(exist_ok=True)
    lacking: dict[str, list[int]] = {}
    found = pa.Table.from_batches(join(parts, folder, lacking.__setitem__, memory))
    assert not list(folder.iterdir())
    return found, lacking


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.lists(KEYS, min_size=1, max_size=4), batch_rows=st.integers(1, 50), memory=st.integers(0, 5000))
def test_rows_are_joined_as_pandas_merges_them(
    keys: list[list[str]], batch_rows: int, memory: int, tmp_path: Path
) -> None:
    found, lacking = joined([part(*said, batch_rows) for said in _numbered(keys)], tmp_path / "spool", memory)
    tables = [pa.Table.from_batches(part(*said, batch_rows).batches).to_pandas() for said in _numbered(keys)]
    expected = tables[0]
    for table in tables[1:]:
        expected = expected.merge(table, on=".key", how="inner")  # keeps the order of the left one
    names = found.schema.names
    assert names == [".key", *(name for name in expected.columns if name != ".key")]
    pd.testing.assert_frame_equal(found.to_pandas().astype(object), expected[names].astype(object), check_dtype=False)
    every = set().union(*keys)
    assert lacking == {
        key: missing for key in every if (missing := [at for at, mine in enumerate(keys) if key not in mine])
    }


def _numbered(keys: list[list[str]]) -> list[tuple[list[str], int]]:
    return [(mine, index) for index, mine in enumerate(keys)]


@pytest.mark.parametrize("memory", [0, 1 << 20])
@pytest.mark.parametrize("at", [0, 1])
def test_a_key_that_is_there_twice(at: int, memory: int, tmp_path: Path) -> None:
    keys = [[f"k{row}" for row in range(100)] for _ in range(2)]
    keys[at][70] = "k30"
    with pytest.raises(
        SourceError, match=rf"part {at}: row 30 and row 70 both have the key 'k30'\. A part may have each key"
    ):
        joined([part(mine, index, 7) for index, mine in enumerate(keys)], tmp_path / "spool", memory)


def test_equal_keys_beyond_memory_end_in_an_error_rather_than_in_more_and_more_files(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="row 0 and row 1 both have the key 'k'"):
        joined([part(["k"] * 100, 0, 10), part(["k"], 1, 10)], tmp_path / "spool", 0)


def test_memory_and_open_files_are_bounded(tmp_path: Path) -> None:
    rows, most_files, most_memory = 200_000, 0, 0
    files, memory = len(list(Path("/proc/self/fd").iterdir())), pa.total_allocated_bytes()

    def watch() -> None:
        nonlocal most_files, most_memory
        most_files = max(most_files, len(list(Path("/proc/self/fd").iterdir())) - files)
        most_memory = max(most_memory, pa.total_allocated_bytes() - memory)

    def batches(index: int, seed: int) -> Iterator[pa.RecordBatch]:
        order = np.random.default_rng(seed).permutation(rows)
        for start in range(0, rows, 5_000):
            watch()
            numbers = pa.array(order[start : start + 5_000])
            yield pa.record_batch({".key": numbers.cast(pa.string()), f"v{index}": numbers, f".{index}": numbers})

    schemas = [
        pa.schema([(".key", pa.string()), (f"v{index}", pa.int64()), (f".{index}", pa.int64())]) for index in (0, 1)
    ]
    parts = [Part(f"part {index}", f".{index}", schemas[index], batches(index, index)) for index in (0, 1)]
    at, order = 0, np.random.default_rng(0).permutation(rows)
    for batch in join(parts, tmp_path, lambda key, lacking: None, memory=1 << 19):  # of 12 MB
        watch()
        assert batch.column("v0").equals(batch.column("v1"))
        assert (batch.column("v0").to_numpy() == order[at : at + batch.num_rows]).all()
        at += batch.num_rows
    assert at == rows
    assert most_files <= 70
    assert most_memory < 24 << 20  # partitioning gathers 16 MB
