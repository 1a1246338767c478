"""Checks: by partition, read from the disk, told so that a person can act."""

from collections.abc import Callable
from html import unescape
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.dagster_run import DagsterRunStatus

from tfr_assets.components.assets.evaluation import Target
from tfr_assets.layout import feature_spec_path, manifest_path, shard_keys
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.verdicts import judge_size

from .conftest import SHARDS
from .project import Project, Ran

KEYS = shard_keys("train", SHARDS)
CONTENT = ("crc", "record_count", "features")


def test_every_partition_has_an_evaluation_of_every_check_that_points_to_its_materialization(
    project: Project, refreshed: tuple[str, Ran]
) -> None:
    name, ran = refreshed
    evaluations = ran.evaluations("shards")
    assert set(evaluations) == {(key, check) for key in KEYS for check in (*CONTENT, "shard_size")}
    for (key, check), found in evaluations.items():
        wanted = dg.AssetRecordsFilter(dg.AssetKey([name, "shards"]), asset_partitions=[key])
        (only,) = project.instance.fetch_materializations(wanted, limit=2).records
        assert found.target_materialization_data == Target(
            storage_id=only.storage_id, run_id=ran.run.run_id, timestamp=only.timestamp
        )
        assert found.blocking == (check in CONTENT)


def test_checks_are_stored_by_partition(project: Project, refreshed: tuple[str, Ran]) -> None:
    name, _ = refreshed
    check = dg.AssetCheckKey(dg.AssetKey([name, "shards"]), "crc")
    records = project.instance.event_log_storage.get_asset_check_execution_history(check, limit=20)
    assert {record.event.dagster_event.asset_check_evaluation_data.partition for record in records} == set(KEYS)


def test_evaluations_tell_the_story(refreshed: tuple[str, Ran]) -> None:
    _, ran = refreshed
    count = ran.evaluations("shards")[KEYS[0], "record_count"]
    assert (count.metadata["records"].value, count.metadata["expected"].value) == (250, 250)
    assert count.description == "250 records, as raw assigns"
    assert "does not matter" in ran.evaluations("merged")[None, "shard_size"].description


def test_verify_reads_again_writes_nothing_and_finds_every_kind_of_damage(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("rotten")
    assert project.refresh(name, SHARDS).ok
    layout = project.layout(name)
    flipped, missing, swapped, whole = (layout.shard_path(key) for key in KEYS)
    content = bytearray(flipped.read_bytes())
    content[20] ^= 1
    flipped.write_bytes(content)
    missing.unlink()
    swapped.write_bytes(whole.read_bytes())
    before = {path: path.stat().st_mtime_ns for path in layout.shards.iterdir()}

    ran = project.run(f"Verify_{name}")
    assert ran.run.status is DagsterRunStatus.FAILURE
    assert {path: path.stat().st_mtime_ns for path in layout.shards.iterdir()} == before
    found = ran.evaluations("shards")
    assert {key: [check for check in CONTENT if not found[key, check].passed] for key in KEYS} == {
        KEYS[0]: ["crc", "record_count", "features"],
        KEYS[1]: ["crc", "record_count", "features"],
        KEYS[2]: ["crc"],
        KEYS[3]: [],
    }
    crc = found[KEYS[0], "crc"]
    assert f"{flipped.name}: record 0 at byte" in crc.description and "data CRC is wrong" in crc.description
    assert f"| {flipped.name} | 0 |" in crc.metadata["first_faults"].value
    assert crc.metadata["faults"].value >= 1
    assert "file is missing" in found[KEYS[1], "crc"].description
    said = ran.problems()[f"{name}_verify"]
    assert said.startswith(f"3 of 4 partitions of {name}/shards are damaged") and all(key in said for key in KEYS[:3])


def test_verify_reads_the_merged_file_and_what_lies_beside_the_files(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("whole")
    assert project.run(f"Refresh_{name}", KEYS, assets=[dg.AssetKey([name, part]) for part in ("raw", "shards")]).ok
    unmerged = project.run(f"Verify_{name}")
    assert unmerged.ok and not unmerged.evaluations("merged")  # nothing is stored of it that could be verified
    assert project.refresh(name, SHARDS).ok
    verified = project.run(f"Verify_{name}")
    assert verified.ok
    assert {check for _, check in verified.evaluations("merged")} == {*CONTENT, "shard_size"}

    layout = project.layout(name)
    content = bytearray(layout.merged_path("train").read_bytes())
    content[20] ^= 1
    layout.merged_path("train").write_bytes(content)
    feature_spec_path(layout.shards).unlink()
    one = project.run(f"Verify_{name}", config=chosen(name, KEYS[1]))
    assert one.ok and not one.evaluations("merged")  # only the shard that it was asked for
    ran = project.run(f"Verify_{name}")
    assert not ran.ok
    found = ran.evaluations("merged")
    assert [check for check in CONTENT if not found[None, check].passed] == list(CONTENT)
    assert f"{layout.merged_path('train').name}: record 0 at byte" in found[None, "crc"].description
    assert all(each.passed for each in ran.evaluations("shards").values())
    said = ran.problems()[f"{name}_verify"]
    assert f"{name}/merged is damaged or missing: " in said and "Materialize it" in said
    assert f"{feature_spec_path(layout.shards)}: file is missing" in said and "Materialize all" in said
    assert said in unescape(layout.report.read_text())
    assert project.refresh(name, SHARDS).ok
    assert project.run(f"Verify_{name}").ok


def test_verify_can_be_asked_for_one_shard_and_misses_no_manifest(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("asked")
    assert project.refresh(name, SHARDS).ok
    one = project.run(f"Verify_{name}", config=chosen(name, KEYS[1]))
    assert one.ok
    assert {key for key, _ in one.evaluations("shards")} == {KEYS[1]}
    manifest_path(project.layout(name).shard_path(KEYS[1])).unlink()
    again = project.run(f"Verify_{name}", config=chosen(name, KEYS[1]))
    assert "no manifest" in again.evaluations("shards")[KEYS[1], "crc"].description


def test_damage_that_verify_finds_is_a_failed_partition_until_it_is_repaired(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("filled")
    assert project.refresh(name, SHARDS).ok
    assert statuses(project, name) == dict.fromkeys(KEYS, "MATERIALIZED")
    project.layout(name).shard_path(KEYS[1]).unlink()
    flipped = project.layout(name).shard_path(KEYS[2])
    flipped.write_bytes(flipped.read_bytes()[:-1])
    ran = project.run(f"Verify_{name}")
    assert not ran.ok
    assert statuses(project, name) == {key: "FAILED" if key in KEYS[1:3] else "MATERIALIZED" for key in KEYS}
    check = dg.AssetCheckKey(dg.AssetKey([name, "shards"]), "crc")
    stored = project.instance.event_log_storage.get_asset_check_execution_history(check, limit=SHARDS)
    assert {record.run_id for record in stored} == {ran.run.run_id}
    assert [record.status.value for record in stored] == ["FAILED", "FAILED", "SUCCEEDED", "SUCCEEDED"]  # latest first
    repaired = project.run(f"Refresh_{name}", KEYS[1:3], assets=[dg.AssetKey([name, "shards"])])
    assert repaired.ok, repaired.problems()
    assert statuses(project, name) == dict.fromkeys(KEYS, "MATERIALIZED")


def test_verify_refuses_a_shard_that_is_not_there(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("asked_wrongly")
    ran = project.run(f"Verify_{name}", config=chosen(name, "train-00009-of-00004"))
    assert "'train-00009-of-00004' is no partition; did you mean 'train-0000" in ran.problems()[f"{name}_verify"]


def chosen(name: str, *shards: str) -> dict[str, Any]:
    """The config of a verification of some shards."""
    return {"ops": {f"{name}_verify": {"config": {"shards": list(shards)}}}}


def statuses(project: Project, name: str) -> dict[str, str | None]:
    """The status of each partition, as the UI shows it."""
    found = project.instance.get_status_by_partition(
        dg.AssetKey([name, "shards"]), KEYS, dg.StaticPartitionsDefinition(KEYS)
    )
    return {key: status and status.name for key, status in (found or {}).items()}


def test_records_are_counted_against_the_current_raw_data(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("grown", rows=400)
    assert project.refresh(name, SHARDS).ok
    make_dataset("grown", rows=500)
    assert project.run("__ASSET_JOB", assets=[dg.AssetKey([name, "raw"])]).ok
    ran = project.run(f"Verify_{name}")
    assert not ran.ok
    found = ran.evaluations("shards")[KEYS[0], "record_count"]
    assert found.description.startswith("100 records where raw assigns 125")
    assert Manifest.load(project.layout(name).shard_path(KEYS[0])).records == 100


@pytest.mark.parametrize(
    ("size", "total", "files", "passed", "says"),
    [
        (1_000, 16_000, 16, True, "does not matter: one could hold all of the data, 16.0 kB"),
        (0, 0, 16, True, "does not matter"),
        (12_500_000, 200e6, 16, True, "does not matter"),
        (25_000_000, 400e6, 16, False, "too small: opening files costs readers time. Recommended are 3 files"),
        (150_000_000, 2.4e9, 16, True, "150.0 MB, which suits"),
        (100_000_000, 1.6e9, 16, True, "suits"),
        (200_000_000, 3.2e9, 16, True, "suits"),
        (50_000_000, 800e6, 16, False, "Recommended are 5 files of about 160.0 MB"),
        (1_000_000_000, 16e9, 16, False, "too large to share among readers. Recommended are 107 files"),
        (250_000_000, 250e6, 1, False, "Recommended are 2 files of about 125.0 MB"),
    ],
)
def test_the_size_of_files_is_judged_where_there_is_enough_data(
    size: int, total: float, files: int, passed: bool, says: str
) -> None:
    verdict = judge_size(size, total, files)
    assert verdict.passed is passed
    assert says in verdict.says
    assert not verdict.check.blocking
