from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tfr_assets.sources import Source, preview, take_inventory
from tfr_assets.sources.landing import shuffle, spool

TABLE = pa.table(
    {
        "i": range(1000),
        "s": [None if n % 7 == 0 else "x" * (n % 30) for n in range(1000)],
        "l": [[n] * (n % 4) for n in range(1000)],
    }
)


def shuffled(
    tmp_path: Path, seed: int, batch_rows: int = 100, memory: int = 64 << 20, table: pa.Table = TABLE
) -> pa.Table:
    tmp_path.mkdir(exist_ok=True)
    batches = shuffle.shuffle(iter(table.to_batches(batch_rows)), seed, tmp_path, memory)
    return pa.Table.from_batches(batches, table.schema)


def test_it_is_a_permutation_that_hangs_on_the_seed_alone(tmp_path: Path) -> None:
    first = shuffled(tmp_path, 1)
    assert first.sort_by("i").equals(TABLE)
    assert first.equals(shuffled(tmp_path, 1))
    assert not first.equals(shuffled(tmp_path, 2))
    numbers = first["i"].to_numpy()
    assert abs(np.corrcoef(numbers, np.arange(1000))[0, 1]) < 0.1


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch_rows=st.integers(1, 1000), memory=st.integers(500, 40_000), seed=st.integers(0, 2**64))
def test_neither_batches_nor_memory_matter(tmp_path: Path, batch_rows: int, memory: int, seed: int) -> None:
    folder = tmp_path / "spool"
    assert shuffled(folder, seed, batch_rows, memory).equals(shuffled(folder, seed))
    assert not list(folder.iterdir())


def test_every_order_is_as_likely_as_any_other(tmp_path: Path) -> None:
    three = pa.table({"i": [0, 1, 2]})
    counts: dict[tuple, int] = {}
    for seed in range(3000):
        order = tuple(shuffled(tmp_path, seed, table=three)["i"].to_pylist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert min(counts.values()) > 400  # 500 expected, deviation 20


def test_open_files_and_memory_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_BLOCK", 1 << 18)
    most_files = most_memory = 0

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 2_000_000, 10_000):
            watch()
            yield pa.record_batch({"i": np.arange(start, start + 10_000)})

    def watch() -> None:
        nonlocal most_files, most_memory
        most_files = max(most_files, len(list(Path("/proc/self/fd").iterdir())) - files)
        most_memory = max(most_memory, pa.total_allocated_bytes() - memory)

    files, memory = len(list(Path("/proc/self/fd").iterdir())), pa.total_allocated_bytes()
    rows = 0
    for batch in shuffle.shuffle(batches(), 0, tmp_path, memory=1 << 21):  # of 32 MB
        rows += batch.num_rows
        watch()
    assert rows == 2_000_000
    assert most_files <= 66
    assert most_memory < 8 << 20


@pytest.mark.parametrize("memory", [64 << 20, 100])
def test_nulls_structs_equal_rows_and_no_rows(tmp_path: Path, memory: int) -> None:
    odd = pa.table({"n": pa.nulls(50), "b": [b"x" * 50] * 50, "st": [{"x": n} for n in range(50)]})
    assert shuffled(tmp_path, 0, 9, memory, odd).sort_by("b").num_rows == 50
    nothing = pa.RecordBatch.from_pylist([], odd.schema)
    empty = list(shuffle.shuffle(iter([nothing]), 0, tmp_path, memory))
    assert [batch.num_rows for batch in empty] == [0]
    assert empty[0].schema == odd.schema


def test_a_source_is_shuffled_when_it_is_landed(tmp_path: Path, landing: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=17)
    TABLE.to_pandas()[["i"]].to_csv(tmp_path / "a.csv", index=False)
    first = take_inventory(Source(path=str(tmp_path / "a.parquet"), shuffle_seed=1), landing)
    again = take_inventory(Source(path=str(tmp_path / "a.parquet"), shuffle_seed=1), landing)
    other = take_inventory(Source(path=str(tmp_path / "a.parquet"), shuffle_seed=2), landing)
    assert first == again
    assert first.fingerprint != other.fingerprint
    assert preview(first, 1000).equals(shuffled(tmp_path / "spool", 1))
    text = take_inventory(Source(path=str(tmp_path / "a.csv"), shuffle_seed=1), landing)
    assert preview(text, 1000)["i"].equals(preview(first, 1000)["i"])
    assert text.files[0].rows == 1000


def test_spool_files_are_removed_after_an_error(tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "partition", lambda *args: 1 / 0)
    monkeypatch.setattr(shuffle.shuffle, "__defaults__", (1,))
    pq.write_table(TABLE, tmp_path / "a.parquet")
    with pytest.raises(ZeroDivisionError):
        take_inventory(Source(path=str(tmp_path / "a.parquet"), shuffle_seed=1), landing)
    assert not list(landing.iterdir())
