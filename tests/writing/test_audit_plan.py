"""What lies in a dataset's folder is compared with the plan, so that what is gone without a trace is noticed, too."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tfr_assets.layout import Layout, feature_spec_path, index_path, manifest_path
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.scan import FaultKind
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.sources import Source
from tfr_assets.writing import sizing
from tfr_assets.writing.audit_plan import audit_plan
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.merged import merge_shards
from tfr_assets.writing.plan import load_inventory
from tfr_assets.writing.raw import materialize_raw

from .conftest import MakeDataset, table, write_all_shards

MISSING, STALE = FaultKind.MISSING, FaultKind.STALE


def found(dataset: Dataset) -> list[tuple[str, FaultKind]]:
    return [(Path(fault.path).name, fault.kind) for fault in audit_plan(dataset)]


def said(dataset: Dataset) -> str:
    return "\n".join(map(str, audit_plan(dataset)))


@pytest.fixture
def dataset(make: MakeDataset) -> Dataset:
    made = make(shards=3)
    write_all_shards(made)
    merge_shards(made)
    assert found(made) == []
    return made


def shard_names(count: int) -> list[str]:
    return [f"sample-train.tfrecord-{index:05d}-of-{count:05d}" for index in range(count)]


def remove_shard(layout: Layout, name: str) -> None:
    for path in (layout.shards / name, index_path(layout.shards / name), manifest_path(layout.shards / name)):
        path.unlink()


def test_shards_that_are_gone_without_a_trace_are_missing(dataset: Dataset) -> None:
    layout = dataset.layout
    for name in shard_names(3):
        remove_shard(layout, name)
    feature_spec_path(layout.shards).unlink()
    assert found(dataset) == [(name, MISSING) for name in shard_names(3)]
    assert "`tfr run sample` writes it" in said(dataset)
    shutil.rmtree(layout.shards)
    assert found(dataset) == [(name, MISSING) for name in shard_names(3)]


def test_a_dataset_of_which_nothing_was_written_says_so(make: MakeDataset) -> None:
    dataset = make()
    assert found(dataset) == [("sample", FaultKind.UNWRITTEN)]
    assert "`tfr run sample` writes it" in said(dataset)
    materialize_raw(dataset)
    assert found(dataset) == [(name, MISSING) for name in shard_names(4)]


def test_without_an_inventory_nobody_knows_what_there_must_be(dataset: Dataset) -> None:
    dataset.layout.inventory.unlink()
    assert found(dataset) == [("inventory.json", FaultKind.BESIDE)]
    assert "there is no inventory" in said(dataset)


def test_another_number_of_shards_makes_those_that_are_there_stale(dataset: Dataset) -> None:
    fewer = replace(dataset, shards=2)
    assert found(fewer) == [
        *((name, MISSING) for name in shard_names(2)),
        *((name, STALE) for name in shard_names(3)),
    ]
    assert "the plan has 2 files of split 'train'" in said(fewer)


def test_shards_of_other_settings_are_stale_and_the_merged_file_with_them(dataset: Dataset) -> None:
    merged = "sample-train.tfrecord"
    for changed, told in (
        (replace(dataset, features=FeatureOptions(drop=("t",))), "made from another features"),
        (replace(dataset, compression="gzip"), "made from another compression"),
    ):
        assert found(changed) == [(name, STALE) for name in (*shard_names(3), merged)]
        assert said(changed).count(told) == 4
        write_all_shards(changed)
        assert found(changed) == [(merged, STALE)]
        merge_shards(changed)
        assert found(changed) == []
        write_all_shards(dataset)
        merge_shards(dataset)


def test_shards_of_other_rows_are_stale(dataset: Dataset, raw: Path) -> None:
    path = dataset.layout.shard_path("train-00001-of-00003")
    manifest = Manifest.load(path)
    assert manifest
    replace(manifest, made_from={**manifest.made_from, "rows": [0, 5]}).save(path)
    assert found(dataset) == [(path.name, STALE)]
    assert "made from another rows" in said(dataset)
    replace(manifest, records=manifest.records - 1).save(path)
    assert found(dataset) == [(path.name, STALE)]
    assert f"holds {manifest.records - 1} records, but {manifest.records} rows are planned" in said(dataset)
    manifest.save(path)
    pq.write_table(table(50), raw)
    materialize_raw(dataset)
    assert found(dataset) == [(name, STALE) for name in shard_names(3)]


def test_a_source_that_was_changed_in_the_yaml_is_told(dataset: Dataset) -> None:
    changed = replace(dataset, source=Source(path=dataset.source.path, shuffle_seed=3))
    assert found(changed) == [("inventory.json", FaultKind.BESIDE)]
    assert "the source settings changed since raw was materialized" in said(changed)


def test_planned_numbers_of_shards_are_those_that_count(make: MakeDataset) -> None:
    dataset = make(auto=True, shards=1)
    materialize_raw(dataset)
    sizes = sizing.plan_sizes(dataset, load_inventory(dataset))
    write_all_shards(sizing.as_planned(dataset))
    assert sizes[0].shards == 1 and found(dataset) == []
    sizing.save_planned(dataset.layout, [replace(sizes[0], shards=2)])
    assert [kind for _, kind in found(dataset)] == [MISSING, MISSING, STALE]
    dataset.layout.planned.unlink()
    assert found(dataset) == [("shards.json", MISSING)]
