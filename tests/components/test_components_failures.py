"""Runs that go wrong: what was good stays recorded, what was not written is never marked as written."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pyarrow as pa

from tests.waiting import wait_for
from tfr_assets.layout import shard_keys

from .conftest import ROWS, SHARDS, numbers
from .project import Project, kill_group, start_run

KEYS = shard_keys("train", SHARDS)


def test_one_failing_shard_leaves_the_others_recorded_and_names_itself(project: Project) -> None:
    project.table("spiked", spiked := numbers())
    ids = spiked["id"].to_pylist()
    ids[600] = 2**63  # beyond int64, in the third shard
    project.table("spiked", spiked.set_column(0, "id", pa.array(ids, pa.uint64())))
    project.dataset("spiked", shards=SHARDS)
    ran = project.refresh("spiked", SHARDS)
    assert not ran.ok
    assert set(ran.materialized("shards")) == {KEYS[0], KEYS[1], KEYS[3]}
    assert stored(project, "spiked") == {KEYS[0], KEYS[1], KEYS[3]}
    assert list(ran.problems()) == ["write_shard[train_00002_of_00004]"]
    assert "'id'" in (said := ran.problems()["write_shard[train_00002_of_00004]"])
    assert "Traceback" not in said
    assert not ran.steps("STEP_UP_FOR_RETRY")
    assert not project.layout("spiked").shard_path(KEYS[2]).exists()
    assert not ran.materialized("merged")
    evaluations = ran.evaluations("shards")  # the others are checked all the same, or all would be shown as failed
    assert {key for key, _ in evaluations} == {KEYS[0], KEYS[1], KEYS[3]}
    assert len(evaluations) == 3 * 4 and all(found.passed for found in evaluations.values())

    # mended, only that shard is written again
    project.dataset("spiked", shards=SHARDS, features={"drop": ["id"]})
    again = project.refresh("spiked", SHARDS)
    assert again.ok, again.problems()


def test_of_several_shards_in_one_step_each_is_recorded_checked_and_failed_by_itself(project: Project) -> None:
    spiked = numbers()
    ids = spiked["id"].to_pylist()
    ids[600] = 2**63  # in the third shard
    project.table("grouped", spiked.set_column(0, "id", pa.array(ids, pa.uint64())))
    project.dataset("grouped", shards=SHARDS, shards_per_step=3)
    ran = project.refresh("grouped", SHARDS)
    assert sorted(step for step in ran.steps("STEP_START") if "write" in step) == [
        "write_shard[train_00000_of_00004_and_2_more]",
        "write_shard[train_00003_of_00004]",
    ]
    assert list(ran.problems()) == ["write_shard[train_00000_of_00004_and_2_more]"]
    assert "1 of 3 shards of this step failed\\ntrain-00002-of-00004: " in str(ran.problems())
    assert "'id'" in str(ran.problems()) and stored(project, "grouped") == {KEYS[0], KEYS[1], KEYS[3]}
    assert set(ran.materialized("shards")) == {KEYS[0], KEYS[1], KEYS[3]}
    assert {key for key, _ in ran.evaluations("shards")} == {KEYS[0], KEYS[1], KEYS[3]}
    ids[600] = 600
    project.table("grouped", spiked.set_column(0, "id", pa.array(ids, pa.uint64())))
    again = project.refresh("grouped", SHARDS)
    assert again.ok, again.problems()
    assert set(again.materialized("shards")) == set(KEYS) and len(again.evaluations("shards")) == SHARDS * 4
    paths = {key: str(metadata["path"]) for key, metadata in again.materialized("shards").items()}
    assert paths == {key: str(project.layout("grouped").shard_path(key)) for key in KEYS}


def test_a_killed_step_is_run_again_from_failure_alone(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("struck")
    project.fault(KEYS[1], "kill")
    ran = project.refresh(name, SHARDS)
    assert not ran.ok
    assert stored(project, name) == {KEYS[0], KEYS[2], KEYS[3]}
    assert not [path for path in project.layout(name).shards.rglob("*") if path.suffix == ".tmp"]
    again = project.run(f"Refresh_{name}", KEYS, from_failure_of=ran)
    assert again.ok, again.problems()
    assert [step for step in again.steps("STEP_START") if "write" in step] == ["write_shard[train_00001_of_00004]"]
    assert stored(project, name) == set(KEYS)
    assert again.materialized("merged")[None]["dagster/row_count"] == ROWS


def test_a_killed_run_from_failure_never_marks_what_was_not_written(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("slain")
    faults = [project.fault(key, "wait") for key in KEYS[:2]]  # two steps run at once: the others have not begun
    process = start_run(project, f"Refresh_{name}", KEYS)
    wait_for_run(lambda: all(Path(f"{fault}.waiting").exists() for fault in faults), process)
    kill_group(process)
    ran = project.ran(project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0].run_id)
    assert ran.run.status is dg.DagsterRunStatus.STARTED
    project.instance.report_run_failed(ran.run)  # as the daemon's monitoring does
    assert stored(project, name) == set()
    for fault in faults:
        fault.unlink()

    again = project.run(f"Refresh_{name}", KEYS, from_failure_of=project.ran(ran.run.run_id))
    assert stored(project, name) == set(KEYS[:2])
    assert not any(project.layout(name).shard_path(key).exists() for key in KEYS[2:])
    said = again.problems()["commit"]  # Dagster had it run without the shards that had not begun
    assert "2 of 4 shards" in said and KEYS[2] in said and KEYS[3] in said and "all steps again" in said

    final = project.refresh(name, SHARDS)
    assert final.ok, final.problems()
    assert final.materialized("shards")[KEYS[0]]["written"] is False
    assert stored(project, name) == set(KEYS)


def test_a_damaged_shard_is_refused_by_the_merge_and_by_the_check_before_it(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("bitten")
    assert project.refresh(name, SHARDS).ok
    path, merged = project.layout(name).shard_path(KEYS[1]), project.layout(name).merged_path()
    flip(path, 20)  # in the first payload
    merged.unlink()
    alone = project.run("__ASSET_JOB", assets=[dg.AssetKey([name, "merged"])])
    assert not alone.ok
    said = alone.problems()[f"{name}__merged"]
    assert f"{KEYS[1]}: " in said and "data CRC" in said and path.name in said
    assert not merged.exists()
    statuses = project.instance.get_status_by_partition(
        dg.AssetKey([name, "shards"]), KEYS, dg.StaticPartitionsDefinition(KEYS)
    )
    assert statuses and [key for key, status in statuses.items() if status and status.name == "FAILED"] == [KEYS[1]]


def test_a_blocking_check_stops_merged_in_the_same_run(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("blocked")
    assert project.refresh(name, SHARDS).ok
    path = project.layout(name).shard_path(KEYS[3])
    # behind the back of the writer, which would notice and write it again: the check is what reads it next
    fault = project.fault(KEYS[0], "wait")
    process = start_run(project, f"Refresh_{name}", KEYS)
    wait_for_run(lambda: Path(f"{fault}.waiting").exists() and wrote(project, name, KEYS[3]), process)
    flip(path, 20)
    fault.unlink()
    assert process.wait(120) == 0
    ran = project.ran(project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0].run_id)
    assert not ran.ok
    evaluations = ran.evaluations("shards")
    assert {key for (key, check), found in evaluations.items() if check == "crc" and not found.passed} == {KEYS[3]}
    assert KEYS[3] in ran.problems()[f"{name}_check_shards"]
    assert not ran.materialized("merged")


def stored(project: Project, name: str) -> set[str]:
    """The shards that Dagster holds for materialized."""
    return set(project.instance.get_materialized_partitions(dg.AssetKey([name, "shards"])))


def wrote(project: Project, name: str, key: str) -> bool:
    """Whether the latest run has recorded a shard, and checked it."""
    (run,) = project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"), limit=1)
    return (key, "shard_size") in project.ran(run.run_id).evaluations("shards")


def flip(path: Path, offset: int) -> None:
    """Flips a bit, leaving size and time as they were."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def wait_for_run(condition: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    """Waits for a condition, as long as the process runs."""

    def holds() -> bool:
        assert process.poll() is None, "the run ended too early"
        return condition()

    wait_for(holds, 120)


def test_from_failure_does_not_mark_a_shard_that_is_gone_meanwhile(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("gone")
    project.fault("train-00001-of-00004", "kill")
    first = project.refresh(name, SHARDS)
    assert not first.ok
    project.layout(name).shard_path("train-00003-of-00004").unlink()
    again = project.run(f"Refresh_{name}", shard_keys("train", SHARDS), from_failure_of=first)
    assert not again.ok
    assert "train-00003-of-00004: no longer on the disk as this run left them" in again.problems()["commit"]
    assert "train-00003-of-00004" not in again.materialized("shards")
    assert project.refresh(name, SHARDS).ok
