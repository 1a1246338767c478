"""Planned numbers of shards: files of 100 to 200 MB, told from a few records, and kept until raw is taken alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.reference import flipped
from tests.sources.media_files import encoded, image, write
from tfr_assets.sources import Inventory, Source, Splits
from tfr_assets.storage.sealed import seal
from tfr_assets.writing import sizing
from tfr_assets.writing.dataset import MAX_SHARDS, Dataset
from tfr_assets.writing.plan import plan_shards
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.shard import write_shard


@given(st.integers(0, 10**13))
def test_files_are_of_a_good_size(size: int) -> None:
    count = sizing.shard_count(size)
    a_file = size / count
    if size > 1_500_000_000:
        assert 100_000_000 < a_file <= 150_000_000
    elif size >= 100_000_000:
        assert count == 10  # enough for the readers
    else:
        assert count == 1 or 10_000_000 <= a_file < 20_000_000
    assert 1 <= count <= MAX_SHARDS


def written_bytes(dataset: Dataset) -> dict[str, int]:
    plan = plan_shards(dataset)
    return {
        split: sum(write_shard(plan, shard).manifest.bytes for shard in plan.of_split(split))
        for split in dataset.splits
    }


def test_sizes_are_about_those_of_the_files(tmp_path: Path) -> None:
    lengths = np.random.default_rng(0).integers(0, 200, 20_000)
    table = pa.table({"text": ["x" * int(n) for n in lengths], "n": lengths})
    pq.write_table(table, tmp_path / "a.parquet")
    source = Source(path=str(tmp_path / "a.parquet"), splits=Splits({"train": 0.9, "test": 0.1}))
    dataset = Dataset("made", source, root=tmp_path / "data", shards=2)
    found = sizing.split_sizes(dataset, materialize_raw(dataset))
    assert {size.split: size.bytes for size in found} == pytest.approx(written_bytes(dataset), rel=0.1)
    assert [size.shards for size in found] == [2, 2]


def test_of_large_files_few_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "in", {f"{n}.png": encoded(image(seed=n, height=40, width=40), "PNG") for n in range(200)})
    dataset = Dataset("made", Source(path=str(tmp_path / "in"), kind="images"), root=tmp_path / "data")
    inventory = materialize_raw(dataset)
    whole, rows = written_bytes(dataset)["train"], 0

    def counted(*asked: Any) -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in read_rows(*asked, batch_rows=2):
            rows += batch.num_rows
            yield batch

    read_rows = sizing.read_rows
    monkeypatch.setattr(sizing, "read_rows", counted)
    monkeypatch.setattr(sizing, "_SAMPLE_BYTES", 10_000)  # two images
    assert sizing.split_sizes(dataset, inventory)[0].bytes == pytest.approx(whole, rel=0.05)
    assert rows <= 8 * 4


def test_a_plan_is_kept_until_raw_is_taken_alone(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "a.parquet")
    dataset = Dataset("made", Source(path=str(tmp_path / "a.parquet")), root=tmp_path / "data", auto=True)
    inventory: Inventory = materialize_raw(dataset)
    layout, splits = dataset.layout, dataset.splits
    assert sizing.load_planned(layout, splits) is None
    wrong = [seal({"shards": planned}) for planned in ({"train": 0}, {"train": "3"}, {"test": 3}, 3, [])]
    for content in (b"{", b"[]", b'{"shards": {"train": 7}}', flipped(seal({"shards": {"train": 7}}), 900), *wrong):
        layout.planned.write_bytes(content)
        assert sizing.load_planned(layout, splits) is None
    layout.planned.write_bytes(seal({"shards": {"train": 7}}))
    assert sizing.as_planned(dataset).shard_counts == {"train": 7}
    assert [size.shards for size in sizing.plan_sizes(dataset, inventory)] == [1]
    assert sizing.load_planned(layout, splits) == {"train": 1}
