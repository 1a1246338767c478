"""What refreshes a dataset by itself: a watch on its raw files, and assets that follow what they are made from."""

from collections.abc import Callable
from datetime import timedelta

import dagster as dg
import pytest

from tfr_assets.components.assets.jobs import all_partitions
from tfr_assets.components.config.component import TFRecordDataset
from tfr_assets.errors import ConfigError
from tfr_assets.layout import shard_keys
from tfr_assets.sources import Source, files_state

from .conftest import ROWS, SHARDS, numbers
from .project import Project

KEYS = shard_keys("train", SHARDS)


def test_a_watch_refreshes_once_for_each_change_of_the_raw_files(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("watched", watch=30)
    sensor = project.repository().get_sensor_def(f"{name}_raw_changed")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert sensor.minimum_interval_seconds == 30
    context = dg.build_sensor_context(instance=project.instance)

    def tick() -> list[dg.RunRequest]:
        with dg.build_sensor_context(instance=project.instance, cursor=context.cursor) as now:
            ticked = sensor.evaluate_tick(now)
        context.update_cursor(ticked.cursor)
        return list(ticked.run_requests or [])

    (first,) = tick()
    assert all_partitions(KEYS).items() <= first.tags.items()
    assert tick() == []
    project.table(name, numbers(ROWS + 1))
    (second,) = tick()
    assert first.run_key is None and second.run_key is None  # Dagster drops a key that was there once
    assert tick() == []
    (project.root / "raw" / f"{name}.parquet").unlink()
    assert tick() == []  # it says what is missing, and goes on looking


def test_the_state_of_files_is_that_of_all_parts(project: Project) -> None:
    folder = project.root / "raw" / "texts"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "1.txt").write_text("one")
    source = Source(kind="text", path=str(folder))
    before = files_state(source)
    assert files_state(source) == before
    (folder / "a" / "2.txt").write_text("two")
    assert files_state(source) != before


def test_only_files_can_be_watched(project: Project) -> None:
    made = TFRecordDataset.from_attributes_dict(attributes={"source": {"callable": "a.b:c"}, "watch": 60})
    with pytest.raises(ConfigError, match=r"watch: a\.b:c is a Python function"):
        made.dataset("rows", project.root)


def test_shards_follow_raw_when_its_content_changed_and_only_then(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("led", automation="on_change", freshness=26)
    raw = dg.AssetKey([name, "raw"])
    assert project.refresh(name, SHARDS).ok
    definitions = project.repository()
    follower = definitions.get_sensor_def(f"{name}_follows_raw")
    assert follower.default_status is dg.DefaultSensorStatus.RUNNING
    assert follower.run_tags["tfr/dataset"] == name
    policy = definitions.asset_graph.get(dg.AssetKey([name, "merged"])).freshness_policy
    assert policy == dg.FreshnessPolicy.time_window(timedelta(hours=26))

    alone = dg.Definitions(assets=definitions.asset_graph.assets_defs)
    seen = dg.evaluate_automation_conditions(alone, instance=project.instance)
    for rows, expected in ((ROWS, set()), (ROWS + 4, set(KEYS))):
        project.table(name, numbers(rows))
        assert project.run(f"Plan_shards_{name}", assets=[raw]).ok
        seen = dg.evaluate_automation_conditions(alone, instance=project.instance, cursor=seen.cursor)
        assert set(seen.get_requested_partitions(dg.AssetKey([name, "shards"]))) == expected


def test_shards_follow_raw_that_changes_right_after_a_refresh(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("raced", automation="on_change")
    raw, shards = dg.AssetKey([name, "raw"]), dg.AssetKey([name, "shards"])
    alone = dg.Definitions(assets=project.repository().asset_graph.assets_defs)
    seen = dg.evaluate_automation_conditions(alone, instance=project.instance)

    def requested() -> set[str | None]:
        nonlocal seen
        seen = dg.evaluate_automation_conditions(alone, instance=project.instance, cursor=seen.cursor)
        return set(seen.get_requested_partitions(shards))

    assert project.refresh(name, SHARDS).ok
    assert requested() == set()  # what is made from the new raw is there already
    project.table(name, numbers(ROWS + 1))
    assert project.refresh(name, SHARDS).ok
    project.table(name, numbers(ROWS + 2))
    assert project.run(f"Plan_shards_{name}", assets=[raw]).ok
    assert requested() == set(KEYS)
    project.table(name, numbers(ROWS + 3))
    assert project.run(f"Plan_shards_{name}", assets=[raw]).ok
    assert requested() == set(KEYS)  # raw has changed since they were asked for
    assert requested() == set()  # whether they could be made or not


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("watch", 1, "watch: expected a whole number of seconds from 10 up, such as 60; found 1"),
        ("automation", "eager", "automation: expected on_change; found 'eager'"),
        ("freshness", "a day", "freshness: expected a number of hours"),
    ],
)
def test_what_cannot_be_is_named_with_its_remedy(field: str, value: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TFRecordDataset.from_attributes_dict(attributes={"source": "a.parquet", field: value})


def test_a_schedule_launches_a_run_only_where_there_is_something_new(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    name = make_dataset("daily", schedule="0 6 * * *")
    path = project.root / "raw" / f"{name}.parquet"

    def tick() -> tuple[list[dg.RunRequest], str]:
        schedule = project.repository().get_schedule_def(f"{name}_schedule")
        with dg.build_schedule_context(instance=project.instance) as context:
            ticked = schedule.evaluate_tick(context)
        return list(ticked.run_requests or []), ticked.skip_message or ""

    def due() -> None:
        (request,), _ = tick()
        assert all_partitions(KEYS).items() <= request.tags.items()
        assert project.run(f"Refresh_{name}", tags=dict(request.tags)).ok
        assert tick() == ([], "nothing new: raw files and settings are those that all files were made from")

    due()  # nothing is there yet
    first = path.read_bytes()
    project.table(name, numbers(ROWS + 1))
    due()  # raw data changed
    project.layout(name).shard_path(KEYS[2]).unlink()
    due()  # a shard is gone
    project.layout(name).merged_path().unlink()
    due()  # the merged file is gone
    project.dataset(name, shards=SHARDS, schedule="0 6 * * *", features={"drop": ["word"]})
    due()  # the YAML changed
    assert project.run(f"Verify_{name}").ok
    assert tick()[0] == []
    content = bytearray(project.layout(name).shard_path(KEYS[0]).read_bytes())
    content[20] ^= 1
    project.layout(name).shard_path(KEYS[0]).write_bytes(content)
    assert tick()[0] == []  # no tick reads data
    assert not project.run(f"Verify_{name}").ok
    due()  # damage was found
    path.write_bytes(first)
    assert project.refresh(name, SHARDS).ok  # by hand
    due()


def test_a_tick_waits_for_the_run_of_the_tick_before(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("slow", schedule="* * * * *")
    schedule = project.repository().get_schedule_def(f"{name}_schedule")
    job = project.repository().get_job(f"Refresh_{name}")
    waiting = project.instance.create_run_for_job(
        job, tags={"dagster/schedule_name": f"{name}_schedule"}, status=dg.DagsterRunStatus.STARTED
    )
    with dg.build_schedule_context(instance=project.instance) as context:
        ticked = schedule.evaluate_tick(context)
    project.instance.report_run_canceled(waiting)
    assert not ticked.run_requests
    assert ticked.skip_message == f"run {waiting.run_id[:8]}, which the tick before launched, is not over yet"


@pytest.mark.parametrize("why", ["a function", "freshness"])
def test_a_schedule_launches_a_run_at_every_tick_where_only_a_run_shows_or_does_what_is_due(
    project: Project, make_dataset: Callable[..., str], why: str
) -> None:
    if why == "freshness":
        name = make_dataset("fresh", schedule="@daily", freshness=26)
    else:
        name = make_dataset("rows", schedule="@daily", source={"callable": "tests.components.conftest:numbers"})
    schedule = project.repository().get_schedule_def(f"{name}_schedule")
    for _ in range(2):
        with dg.build_schedule_context(instance=project.instance) as context:
            (request,) = schedule.evaluate_tick(context).run_requests or []
        assert "tfr/raw_state" not in request.tags
