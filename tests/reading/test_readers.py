"""Every reader gives every record of its files exactly once, and the batches that the spec promises."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.registry import READERS
from tfr_assets.reading.tensors.spec import element_spec

Written = Callable[..., Layout]
IN_PROCESS = [name for name, reader in READERS.items() if not reader.uses_processes]


def table(rows: int) -> pa.Table:
    """Scalars, absent values, ragged rows of one and of two levels."""
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "maybe": pa.array([None if i % 3 else i for i in range(rows)], pa.int32()),
            "value": pa.array([None if i % 7 == 0 else i / 4 for i in range(rows)], pa.float32()),
            "name": pa.array([f"name {i}\0" for i in range(rows)]),
            "tags": pa.array([[f"tag {j}" for j in range(i % 4)] for i in range(rows)], pa.list_(pa.string())),
            "deep": pa.array([[[j] * (j + 1) for j in range(i % 3)] for i in range(rows)]),
        }
    )


def rows_of(dataset: tf.data.Dataset) -> list[dict[str, Any]]:
    """All records of a dataset as Python values, and NaN as None."""
    rows = []
    for batch in dataset:
        columns = {n: t.to_list() if isinstance(t, tf.RaggedTensor) else t.numpy().tolist() for n, t in batch.items()}
        rows += [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [{**row, "value": None if np.isnan(row["value"]) else row["value"]} for row in rows]


def expected(source: pa.Table) -> list[dict[str, Any]]:
    return [
        {
            "deep": row["deep"],
            "id": row["id"],
            "maybe": [] if row["maybe"] is None else [row["maybe"]],
            "name": row["name"].encode(),
            "tags": [tag.encode() for tag in row["tags"]],
            "value": row["value"],
        }
        for row in source.to_pylist()
    ]


def test_the_table_knows_the_limits_of_readers() -> None:
    assert {name for name, reader in READERS.items() if reader.uses_processes} == {"file_queue", "data_service"}
    unordered = {"interleave", "autotuned", "sharded", "bounded", "file_queue", "data_service"}
    assert {name for name, reader in READERS.items() if not reader.keeps_order} == unordered
    assert all(reader.keeps_order and reader.reads_urls for reader in READERS.values() if not reader.drawback)


def test_the_documentation_names_every_reader() -> None:
    text = (Path(__file__).parent.parent.parent / "docs" / "reading.md").read_text()
    assert [name for name in READERS if f"`{name}`" not in text] == []


@pytest.mark.parametrize("on_error", ["unchecked", "raise", "skip"])
@pytest.mark.parametrize("reader", IN_PROCESS)
def test_every_reader_gives_every_record_once(written: Written, reader: str, on_error: Any) -> None:
    source = table(50)
    files, options = locate(written(source).folder), ReadOptions(7, on_error=on_error)
    if on_error == "skip" and not READERS[reader].skips_damage:
        with pytest.raises(ConfigError, match="cannot leave damaged records out"):
            READERS[reader](files, options)
        return
    dataset = READERS[reader](files, options)
    found = rows_of(dataset)
    if not READERS[reader].keeps_order:
        found.sort(key=lambda row: int(row["id"]))
    assert found == expected(source)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("reader", ["naive", "vectorized", "autotuned", "bounded", "cache_memory"])
def test_compressed_files_are_read_alike(written: Written, reader: str, compression: str) -> None:
    files = locate(written(table(20), compression=compression).folder)
    for on_error in ("unchecked", "skip"):
        found = rows_of(READERS[reader](files, ReadOptions(7, on_error=on_error)))  # type: ignore[arg-type]
        assert sorted(row["id"] for row in found) == list(range(20))


@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize("reader", IN_PROCESS)
def test_every_reader_gives_the_batches_that_the_spec_promises(
    written: Written, reader: str, drop_remainder: bool
) -> None:
    files = locate(written(table(20)).folder)
    dataset = READERS[reader](files, ReadOptions(8, drop_remainder))
    assert dataset.element_spec == element_spec(files.features, 8 if drop_remainder else None)
    assert dataset.cardinality() == (2 if drop_remainder else 3)
    for _ in range(2):
        assert [len(batch["id"]) for batch in dataset] == ([8, 8] if drop_remainder else [8, 8, 4])


@pytest.mark.parametrize("reader", IN_PROCESS)
def test_no_records_are_no_error(written: Written, reader: str) -> None:
    dataset = READERS[reader](locate(written(table(2).slice(0, 0)).folder), ReadOptions(4))
    assert list(dataset) == []


@pytest.mark.parametrize("reader", IN_PROCESS)
def test_a_shuffled_epoch_has_every_record_once_and_the_next_another_order(written: Written, reader: str) -> None:
    files = locate(written(table(60)).folder)
    first, again = (READERS[reader](files, ReadOptions(10, shuffle=50, seed=3)) for _ in range(2))
    epochs = [[row["id"] for row in rows_of(dataset)] for dataset in (first, first, again)]
    assert all(sorted(epoch) == list(range(60)) for epoch in epochs)
    assert epochs[0] != epochs[1]
    assert epochs[0] == epochs[2]  # the seed decides
    assert epochs[0] != list(range(60))
