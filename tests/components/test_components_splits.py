"""Several splits in one dataset, and numbers of shards that are planned, in whole runs."""

import json

import dagster as dg
import pyarrow as pa

from tfr_assets.components.assets.file_checks import judge_merged
from tfr_assets.components.config.component import TFRecordDataset
from tfr_assets.layout import shard_keys
from tfr_assets.records.frames.manifest import Manifest

from .project import Project

SPLITS = {"train": 0.8, "validation": 0.1, "test": 0.1}
SHARDS = {"train": 3, "validation": 1, "test": 2}
KEYS = [key for split, count in SHARDS.items() for key in shard_keys(split, count)]


def test_every_split_has_its_shards_its_merged_file_and_its_checks(project: Project) -> None:
    table = pa.table({"id": pa.array(range(1000)), "word": [f"word {n}" for n in range(1000)]})
    project.table("parts", table)
    project.dataset("parts", splits=SPLITS, shards=SHARDS, shuffle=1)
    ran = project.run("Refresh_parts", KEYS)
    assert ran.ok, ran.problems()

    layout = project.layout("parts")
    raw = ran.materialized("raw")[None]
    records = {split: Manifest.load(layout.merged_path(split)).records for split in SPLITS}
    assert sum(records.values()) == 1000 and all(records.values())
    for split, count in SHARDS.items():
        found = [Manifest.load(layout.shard_path(key)).records for key in shard_keys(split, count)]
        assert sum(found) == records[split] and max(found) - min(found) <= 1
        assert f"| {split} | {records[split]:,} | {count} |" in raw["plan"]
    assert set(ran.materialized("shards")) == set(KEYS)
    assert ran.materialized("merged")[None]["dagster/row_count"] == 1000
    evaluated = ran.evaluations("shards") | ran.evaluations("merged")
    assert len(evaluated) == 4 * len(KEYS) + 4 and all(found.passed for found in evaluated.values())

    project.dataset("parts", splits={"train": 0.9, "test": 0.1}, shards=1)
    ran = project.run("Refresh_parts", ["train-00000-of-00001", "test-00000-of-00001"])
    assert ran.ok, ran.problems()
    for folder in (layout.shards, layout.merged):  # what no split names any more is gone
        assert len(list(folder.glob("parts-*"))) == 2

    path = layout.merged_path("test")
    path.write_bytes(path.read_bytes()[:-1])
    merged = dg.AssetKey(["parts", "merged"])
    check = project.run("Refresh_parts", ["test-00000-of-00001"], assets=[dg.AssetKey(["parts", "shards"]), merged])
    assert check.ok  # it is written again


def test_a_damaged_split_is_named_by_the_check_of_the_merged_files(project: Project) -> None:
    project.table("bad", pa.table({"id": pa.array(range(100))}))
    project.dataset("bad", splits={"train": 0.5, "test": 0.5}, shards=1)
    keys = ["train-00000-of-00001", "test-00000-of-00001"]
    assert project.run("Refresh_bad", keys).ok
    path = project.layout("bad").merged_path("test")
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    by_name = {verdict.check.name: verdict for verdict in judge_merged(project.load("bad"))}
    assert [name for name, verdict in by_name.items() if not verdict.passed] == ["crc", "record_count", "features"]
    assert by_name["crc"].says.startswith("test: ") and by_name["crc"].faults[0].path == str(path)
    assert by_name["crc"].shown["records of train"] > 0


def test_auto_plans_in_every_refresh_and_has_a_partition_a_split(project: Project) -> None:
    wide = pa.table({"text": pa.array(["x" * 250_000] * 100).dictionary_encode()})
    project.table("wide", wide)
    project.dataset("wide", shards="auto")
    layout = project.layout("wide")
    ran = project.run("Refresh_wide", tags={"dagster/partition": "train"})  # as the UI launches a single partition
    assert ran.ok, ran.problems()
    assert ran.materialized("raw")[None]["dagster/row_count"] == 100
    assert json.loads(layout.planned.read_text())["shards"] == {"train": 2}
    assert [Manifest.load(layout.shard_path(key)).records for key in shard_keys("train", 2)] == [50, 50]
    shown = ran.materialized("shards")["train"]
    assert (shown["files"], shown["dagster/partition_row_count"]) == (2, 100)
    assert shown["dagster/size_bytes"] == sum(layout.shard_path(key).stat().st_size for key in shard_keys("train", 2))
    assert {name: found.passed for name, found in ran.evaluations("shards").items()} == {
        ("train", check): True for check in ("crc", "record_count", "features", "shard_size")
    }
    assert ran.materialized("merged")[None]["dagster/row_count"] == 100

    project.table("wide", pa.concat_tables([wide, wide]))
    ran = project.run("Refresh_wide", ["train"])
    assert ran.ok, ran.problems()
    assert "| train | 200 | 5 |" in ran.materialized("raw")[None]["plan"]
    assert {path.name for path in layout.shards.glob("wide-*")} == {
        layout.shard_path(key).name for key in shard_keys("train", 5)
    }
    assert ran.materialized("merged")[None]["dagster/row_count"] == 200

    damaged = layout.shard_path("train-00003-of-00005")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    ran = project.run("Verify_wide")
    assert not ran.ok
    assert damaged.name in str(ran.evaluations("shards")["train", "crc"].description)
    again = project.run("Refresh_wide", ["train"], assets=[dg.AssetKey(["wide", "shards"])])
    assert again.ok and len([step for step in again.steps("STEP_START") if "write_shard" in step]) == 5
    assert project.run("Verify_wide").ok


def test_numbers_of_shards_must_be_those_of_the_splits() -> None:
    made = TFRecordDataset.from_attributes_dict(
        attributes={"source": "x.parquet", "splits": {"a": 0.5, "b": 0.5}, "shards": {"a": 2}}
    )
    assert made.shards == {"a": 2}
