"""Whole runs, as the UI starts them: multiprocess executor, an instance on disk."""

from collections.abc import Callable

import dagster as dg
import pyarrow as pa
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from tfr_assets.layout import shard_keys
from tfr_assets.records.frames.manifest import Manifest

from .conftest import ROWS, SHARDS, numbers
from .project import Project, Ran

KEYS = shard_keys("train", SHARDS)


def test_a_refresh_makes_and_checks_everything_in_one_run(project: Project, refreshed: tuple[str, Ran]) -> None:
    name, ran = refreshed
    assert ran.ok, ran.problems()
    layout = project.layout(name)
    assert [Manifest.load(layout.shard_path(key)).records for key in KEYS] == [250] * 4
    assert Manifest.load(layout.merged_path()).records == ROWS
    assert set(ran.materialized("shards")) == set(KEYS)
    assert len(ran.evaluations("shards")) == 4 * SHARDS
    assert len(ran.evaluations("merged")) == 4
    assert all(found.passed for found in (ran.evaluations("shards") | ran.evaluations("merged")).values())


def test_every_shard_has_a_step_that_names_it(refreshed: tuple[str, Ran]) -> None:
    _, ran = refreshed
    wrote = [step for step in ran.steps("STEP_SUCCESS") if step.startswith("write_shard")]
    assert sorted(wrote) == [f"write_shard[train_{i:05d}_of_00004]" for i in range(SHARDS)]


def test_metadata_tells_of_rows_bytes_speed_schema_preview_and_place(
    project: Project, refreshed: tuple[str, Ran]
) -> None:
    name, ran = refreshed
    raw = ran.materialized("raw")[None]
    assert raw["dagster/row_count"] == ROWS
    assert [(column.name, column.type) for column in raw["dagster/column_schema"].columns] == [
        ("id", "uint64"),
        ("half", "float"),
        ("word", "string"),
    ]
    assert "| 1 | 0.5 | word 1 |" in raw["preview"]
    shard = ran.materialized("shards")[KEYS[2]]
    path = project.layout(name).shard_path(KEYS[2])
    assert (shard["dagster/partition_row_count"], shard["dagster/row_count"]) == (250, ROWS)
    assert shard["dagster/size_bytes"] == path.stat().st_size
    assert shard["dagster/uri"] == str(path)
    assert shard["records_per_second"] > 0 and shard["bytes_per_record"] > 0 and shard["written"]
    assert {column.name for column in shard["dagster/column_schema"].columns} == {"id", "half", "word"}
    assert ran.materialized("merged")[None]["fingerprint"] == Manifest.load(project.layout(name).merged_path()).digest


def test_the_catalog_shows_group_owners_tags_kinds_and_versions(project: Project, refreshed: tuple[str, Ran]) -> None:
    name, _ = refreshed
    graph = project.repository().asset_graph
    parts = [key.path[1] for key in graph.get_all_asset_keys() if key.path[0] == name]
    assert sorted(parts) == ["merged", "raw", "shards"]  # what is not asked for is not on the board
    for part in parts:
        node = graph.get(dg.AssetKey([name, part]))
        assert node.group_name == name
        assert node.owners == ["team:data"]
        assert node.tags["domain"] == "maths"
        assert node.kinds
        assert node.description.startswith("Numbers.\n\n")
    assert all(graph.get(dg.AssetKey([name, part])).code_version for part in ("raw", "shards", "merged"))
    assert "dagster/code_references" in graph.get(dg.AssetKey([name, "raw"])).metadata


def test_raw_has_its_fingerprint_as_data_version_and_every_shard_says_what_it_was_made_from(
    project: Project, refreshed: tuple[str, Ran]
) -> None:
    name, ran = refreshed
    fingerprint = ran.materialized("raw")[None]["fingerprint"]
    records = [e.step_materialization_data.materialization for e in ran.events if e.is_step_materialization]
    versions = {record.asset_key.path[-1]: record.tags["dagster/data_version"] for record in records}
    assert versions["raw"] == fingerprint
    shards = [record for record in records if record.asset_key.path[-1] == "shards"]
    assert sorted(str(record.partition) for record in shards) == KEYS  # each once, by the step that wrote it
    kept = ("data_version", "data_version_is_user_provided", "code_version", f"input_data_version/{name}/raw")
    assert len({tuple(record.tags[f"dagster/{tag}"] for tag in kept) for record in shards}) == 1
    assert shards[0].tags[f"dagster/input_data_version/{name}/raw"] == fingerprint


def test_doing_it_again_writes_nothing_and_says_so(project: Project, refreshed: tuple[str, Ran]) -> None:
    name, _ = refreshed
    layout = project.layout(name)
    paths = [layout.shard_path(key) for key in KEYS]
    before = [path.stat().st_mtime_ns for path in paths]
    again = project.refresh(name, SHARDS)
    assert again.ok
    assert [path.stat().st_mtime_ns for path in paths] == before
    for metadata in (*again.materialized("shards").values(), again.materialized("merged")[None]):
        assert metadata["written"] is False
        assert "matches its manifest" in metadata["skipped"]
        assert "records_per_second" not in metadata
    assert status(project, name) == dict.fromkeys(["raw", *KEYS, "merged"], StaleStatus.FRESH)


def test_one_shard_and_a_range_of_shards_can_be_made_alone(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("few")
    assert project.run("__ASSET_JOB", assets=[dg.AssetKey([name, "raw"])]).ok
    shards = [dg.AssetKey([name, "shards"])]
    one = project.run("__ASSET_JOB", tags={"dagster/partition": KEYS[2]}, assets=shards)
    assert one.ok and set(one.materialized("shards")) == {KEYS[2]}
    some = project.run("__ASSET_JOB", KEYS[1:3], assets=shards)
    assert some.ok and set(some.materialized("shards")) == set(KEYS[1:3])
    assert some.materialized("shards")[KEYS[1]]["written"] is True
    assert some.materialized("shards")[KEYS[2]]["written"] is False
    merged = project.run("__ASSET_JOB", assets=[dg.AssetKey([name, "merged"])])
    assert not merged.ok
    assert f"{KEYS[0]}: missing" in merged.problems()[f"{name}__merged"]
    assert f"{KEYS[3]}: missing" in merged.problems()[f"{name}__merged"]


def test_a_changed_source_is_noticed_and_makes_the_shards_stale(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("changing")
    assert project.refresh(name, SHARDS).ok
    project.table(name, numbers(start=5))
    layout = project.layout(name)
    layout.shard_path(KEYS[1]).unlink()
    shards = project.run("__ASSET_JOB", KEYS, assets=[dg.AssetKey([name, "shards"])])
    assert not shards.ok  # one shard would have been of other data than the rest
    assert f"{name}.parquet" in (said := shards.problems()["write_shard[train_00001_of_00004]"])
    assert "raw again" in said
    assert project.run("__ASSET_JOB", assets=[dg.AssetKey([name, "raw"])]).ok
    found = status(project, name)
    assert {found[key] for key in KEYS} == {StaleStatus.STALE}
    assert found["raw"] is StaleStatus.FRESH
    again = project.refresh(name, SHARDS)
    assert again.ok
    assert all(metadata["written"] for metadata in again.materialized("shards").values())
    assert status(project, name)["merged"] is StaleStatus.FRESH


def test_changed_settings_make_the_shards_stale_and_then_new(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("tuned")
    assert project.refresh(name, SHARDS).ok
    project.dataset(name, shards=SHARDS, compression="gzip", features={"drop": ["word"]})
    found = status(project, name)
    assert found["raw"] is StaleStatus.FRESH
    assert {found[key] for key in KEYS} == {StaleStatus.STALE}
    again = project.refresh(name, SHARDS)
    assert again.ok, again.problems()
    manifest = Manifest.load(project.layout(name).shard_path(KEYS[0]))
    assert manifest.compression == "gzip"
    assert [feature.name for feature in manifest.features.features] == ["half", "id"]


def test_another_number_of_shards_replaces_the_old_ones(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("recut", shards=3)
    assert project.refresh(name, 3).ok
    project.dataset(name, shards=2)
    assert project.refresh(name, 2).ok
    layout = project.layout(name)
    assert sorted(path.name for path in layout.shards.glob("*.tfrecord-*")) == [
        layout.shard_path(key).name for key in shard_keys("train", 2)
    ]


def test_fewer_rows_than_shards_and_no_rows_at_all(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("sparse", rows=1, shards=2)
    ran = project.refresh(name, 2)
    assert ran.ok, ran.problems()
    assert sorted(metadata["dagster/partition_row_count"] for metadata in ran.materialized("shards").values()) == [0, 1]
    name = make_dataset("empty", rows=0, shards=2)
    ran = project.refresh(name, 2)
    assert ran.ok, ran.problems()
    assert ran.materialized("merged")[None]["dagster/row_count"] == 0


def test_a_shuffled_csv_is_landed_and_refreshed(project: Project) -> None:
    (project.root / "raw" / "shuffled.csv").write_text("n,word\n" + "".join(f"{i},w{i}\n" for i in range(100)))
    project.dataset("shuffled", source="raw/shuffled.csv", shards=2, shuffle=7)
    ran = project.refresh("shuffled", 2)
    assert ran.ok, ran.problems()
    assert ran.materialized("raw")[None]["landed"] >= 1
    assert project.repository().asset_graph.get(dg.AssetKey(["shuffled", "raw"])).kinds == {"csv"}
    assert ran.materialized("merged")[None]["dagster/row_count"] == 100


def test_a_source_that_is_not_there_fails_with_its_path_and_without_retries(project: Project) -> None:
    project.dataset("absent", source="raw/nowhere.parquet", shards=2)
    ran = project.refresh("absent", 2)
    assert not ran.ok
    assert "nowhere.parquet" in ran.problems()["absent__raw"]
    assert "Traceback" not in ran.problems()["absent__raw"]
    assert not ran.steps("STEP_UP_FOR_RETRY")


def test_a_column_that_cannot_be_encoded_fails_before_anything_is_written(project: Project) -> None:
    project.table("odd", pa.table({"ok": [1], "nothing": pa.nulls(1)}))
    project.dataset("odd", shards=2)
    ran = project.refresh("odd", 2)
    assert not ran.ok
    assert "nothing" in ran.problems()["odd_plan"]
    assert not project.layout("odd").shards.exists()


def test_a_run_without_partitions_says_what_is_missing(project: Project, refreshed: tuple[str, Ran]) -> None:
    name, _ = refreshed
    ran = project.run(f"Refresh_{name}")
    assert "this run was started without partitions" in ran.problems()[f"{name}_plan"]


def status(project: Project, name: str) -> dict[str, StaleStatus]:
    """Whether raw, each shard and merged are fresh."""
    graph = project.repository().asset_graph
    resolver = CachingStaleStatusResolver(project.instance, graph, LoadingContextForTest(project.instance))
    wanted: list[tuple[str, str | None]] = [("raw", None), *(("shards", key) for key in KEYS), ("merged", None)]
    return {key or part: resolver.get_status(dg.AssetKey([name, part]), key) for part, key in wanted}
