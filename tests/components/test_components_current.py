"""The check `current`: whether what is stored is what YAML and raw data ask for now, told without reading data."""

from collections.abc import Callable

import dagster as dg

from tfr_assets.layout import shard_keys

from .conftest import ROWS, SHARDS, numbers
from .project import Project

KEYS = shard_keys("train", SHARDS)


def latest(project: Project, name: str) -> tuple[bool, str]:
    """Whether the check passed, and what it said."""
    key = dg.AssetCheckKey(dg.AssetKey([name, "shards"]), "current")
    (record,) = project.instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    assert record.evaluation and record.evaluation.partition is None and not record.evaluation.blocking
    return record.evaluation.passed, record.evaluation.description or ""


def tick(project: Project, name: str, cursor: str | None) -> tuple[str | None, str]:
    """Evaluates the sensor, and returns its cursor and what it said."""
    sensor = project.repository().get_sensor_def(f"{name}_current")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    with dg.build_sensor_context(instance=project.instance, cursor=cursor) as context:
        ticked = sensor.evaluate_tick(context)
    assert not ticked.run_requests
    return ticked.cursor, ticked.skip_message or ""


def test_a_change_of_yaml_or_files_is_seen_without_a_run(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("aged")
    assert tick(project, name, None) == (None, "nothing was materialized yet")
    assert project.refresh(name, SHARDS).ok
    assert latest(project, name) == (True, "All 4 shards are those of the current settings and raw data")
    cursor, _ = tick(project, name, None)
    assert tick(project, name, cursor) == (cursor, "neither settings nor files have changed since the last look")

    project.dataset(name, shards=SHARDS, features={"drop": ["word"]})
    cursor, said = tick(project, name, cursor)
    assert latest(project, name) == (False, said)
    assert said == (
        f"Of 4 shards, 4 made from another features: {KEYS[0]}, {KEYS[1]}, {KEYS[2]}, {KEYS[3]}. "
        "Materialize all of the dataset again"
    )
    assert project.run(f"Refresh_{name}", [KEYS[0]]).ok is False  # merged refuses the others
    assert project.refresh(name, SHARDS).ok
    assert latest(project, name)[0]

    project.layout(name).shard_path(KEYS[1]).unlink()
    _, said = tick(project, name, cursor)
    assert said.startswith(f"Of 4 shards, 1 missing: {KEYS[1]}.")
    project.dataset(name, shards=SHARDS, source=str(project.table(f"{name}_other", numbers(ROWS))))
    tick(project, name, None)
    assert "source settings changed" in latest(project, name)[1]


def test_a_new_inventory_alone_makes_shards_outdated(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("behind")
    assert project.refresh(name, SHARDS).ok
    project.table(name, numbers(ROWS + 1))
    assert project.run(f"Plan_shards_{name}").ok
    passed, said = latest(project, name)
    assert not passed and "made from another inventory" in said
    assert project.run(f"Verify_{name}").ok is False
    assert not latest(project, name)[0]


def test_no_tick_looks_while_a_run_writes(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("busy")
    assert project.refresh(name, SHARDS).ok
    run = project.instance.create_run_for_job(
        project.repository().get_job(f"Refresh_{name}"),
        tags={"tfr/dataset": name},
        status=dg.DagsterRunStatus.STARTED,
    )
    assert tick(project, name, None) == (None, f"run {run.run_id[:8]} is working on {name}")
    project.instance.report_run_canceled(run)


def test_a_refresh_evaluates_it_once_and_shows_it_as_a_warning(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("shown")
    ran = project.refresh(name, SHARDS)
    found = [e.asset_check_evaluation_data for e in ran.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    (current,) = [each for each in found if each.check_name == "current"]
    assert current.passed and current.partition is None
    one = project.run(f"Refresh_{name}", [KEYS[1]], assets=[dg.AssetKey([name, "shards"])])
    assert one.ok
    said = [log.user_message for log in project.instance.all_logs(ran.run.run_id) if log.level >= 20]
    stories = [each for each in said if ": wrote 250 records, " in each and each.endswith(" MB/s)")]
    assert len(stories) == SHARDS  # a line per shard: how many, how large, how fast
    assert not [log for log in project.instance.all_logs(one.run.run_id) if log.level >= 30]  # and no warning
