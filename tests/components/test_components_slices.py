"""Raw data that arrives in slices: each is made, checked, mended and launched again by itself, in real runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.storage.tags import SCHEDULE_NAME_TAG
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.waiting import wait_for
from tfr_assets.components.config.component import TFRecordDataset
from tfr_assets.components.runs.dead_runs import DATASET_TAG
from tfr_assets.components.runs.held_apart import WAITING
from tfr_assets.components.runs.slices import SLICES_TAG, partitions_of, queue_tag
from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout, shard_keys
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.sources import Slices
from tfr_assets.storage.locks import lock, unlock

from .conftest import numbers
from .project import Project, Ran, start_run

DAYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
KEYS = shard_keys("train", 2)


def day(project: Project, name: str, key: str, rows: int, start: int = 0) -> Path:
    folder = project.root / "raw" / name / key.replace("-", "/")
    folder.mkdir(parents=True, exist_ok=True)
    return project.table(f"{name}/{key.replace('-', '/')}/part", numbers(rows, start))


def make_daily(project: Project, name: str, **attributes: Any) -> None:
    for number, key in enumerate(DAYS[:2]):
        day(project, name, key, 100 + number, 1000 * number)
    source = f"raw/{name}/{{slice:%Y/%m/%d}}/*.parquet"
    project.dataset(name, **({"source": source, "slices": {"daily": "2026-03-01"}, "shards": 2} | attributes))


def refresh(project: Project, name: str, key: str, **more: Any) -> Ran:
    return project.run(f"Refresh_{name}", tags={"dagster/partition": key}, **more)


def states(layout: Layout) -> dict[str, tuple[int, int]]:
    """What changes when any file of a folder is written again."""
    files = (path for path in layout.folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def ids(layout: Layout) -> list[int]:
    """The ids in the merged file, as TensorFlow reads them."""
    import tensorflow as tf

    features = {"id": tf.io.FixedLenFeature((), tf.int64)}
    records = tf.data.TFRecordDataset(str(layout.merged_path()))
    return [int(tf.io.parse_single_example(record, features)["id"]) for record in records]


@pytest.fixture(scope="module")
def daily(project: Project) -> str:
    """A dataset with slices of days, two of which are made."""
    make_daily(project, "daily")
    for key in DAYS[:2]:
        ran = refresh(project, "daily", key)
        assert ran.ok, ran.problems()
    return "daily"


def test_a_slice_is_a_dataset_in_a_folder_of_its_own(project: Project, daily: str) -> None:
    whole = project.layout(daily)
    assert sorted(path.name for path in whole.folder.iterdir()) == ["slices"]
    assert ids(whole.of_slice(DAYS[0])) == list(range(100))
    assert ids(whole.of_slice(DAYS[1])) == list(range(1000, 1101))
    for key, rows in zip(DAYS[:2], (100, 101), strict=True):
        found = [Manifest.load(whole.of_slice(key).shard_path(shard)) for shard in KEYS]
        assert sum(manifest.records for manifest in found if manifest) == rows
        assert whole.of_slice(key).report.is_file()


def test_a_run_records_its_slice_as_a_partition_of_every_asset_and_check(project: Project, daily: str) -> None:
    ran = refresh(project, daily, DAYS[0])
    assert ran.ok, ran.problems()
    for part in ("raw", "shards", "merged"):
        ((key, metadata),) = ran.materialized(part).items()
        assert key == DAYS[0]
        if part != "raw":
            assert metadata["written"] is False  # all was there
    assert ran.materialized("shards")[DAYS[0]]["files"] == 2
    evaluated = [e.asset_check_evaluation_data for e in ran.events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    assert len(evaluated) == 9 and all(each.passed for each in evaluated)
    assert {each.partition for each in evaluated if each.check_name != "current"} == {DAYS[0]}
    for part in ("raw", "shards", "merged"):
        there = project.instance.get_materialized_partitions(dg.AssetKey([daily, part]))
        assert set(DAYS[:2]) <= there


def test_a_changed_slice_rewrites_its_own_shards_only(project: Project) -> None:
    make_daily(project, "changed")
    whole = project.layout("changed")
    for key in DAYS[:2]:
        assert refresh(project, "changed", key).ok
    before = states(whole.of_slice(DAYS[0]))
    day(project, "changed", DAYS[1], 120, 5000)
    assert refresh(project, "changed", DAYS[1]).ok
    assert states(whole.of_slice(DAYS[0])) == before
    assert ids(whole.of_slice(DAYS[1])) == list(range(5000, 5120))

    damaged = whole.of_slice(DAYS[1]).shard_path(KEYS[1])
    content = bytearray(damaged.read_bytes())
    content[30] ^= 1
    damaged.write_bytes(content)
    verified = project.run("Verify_changed", tags={"dagster/partition": DAYS[1]})
    assert not verified.ok and "1 of 1 partitions of changed/shards are damaged" in str(verified.problems())
    assert project.run("Verify_changed", tags={"dagster/partition": DAYS[0]}).ok
    other = whole.of_slice(DAYS[1]).shard_path(KEYS[0]).stat().st_ino
    assert refresh(project, "changed", DAYS[1]).ok
    assert project.run("Verify_changed", tags={"dagster/partition": DAYS[1]}).ok
    assert whole.of_slice(DAYS[1]).shard_path(KEYS[0]).stat().st_ino == other  # only the damaged file was written


def test_a_slice_without_data_fails_alone_and_is_launched_again(project: Project, daily: str) -> None:
    ran = refresh(project, daily, DAYS[2])
    assert not ran.ok
    (problem,) = ran.problems().values()
    assert "raw/daily/2026/03/03/*.parquet: no file matches this pattern." in problem
    assert DAYS[2] not in project.instance.get_materialized_partitions(dg.AssetKey([daily, "raw"]))
    day(project, daily, DAYS[2], 10)
    again = refresh(project, daily, DAYS[2], from_failure_of=ran)
    assert again.ok, again.problems()
    assert ids(project.layout(daily).of_slice(DAYS[2])) == list(range(10))


def test_a_run_without_a_slice_or_with_one_that_is_gone_says_so(project: Project, daily: str) -> None:
    ran = project.run(f"Plan_shards_{daily}")
    assert "this run was started without a slice" in str(ran.problems())
    key = datetime.now(UTC).strftime("%Y-%m-%d")
    ran = refresh(project, daily, key)  # today is not over
    assert f"there is no slice '{key}'" in str(ran.problems())
    assert not project.layout(daily).of_slice(key).folder.exists()


def test_splits_and_planned_numbers_of_shards_are_those_of_each_slice(project: Project) -> None:
    splits = {"train": 0.8, "test": 0.2}
    make_daily(project, "parts", splits=splits, shards="auto", compression="gzip")
    day(project, "parts", DAYS[1], 101)  # the first hundred rows are those of the day before
    for key in DAYS[:2]:
        ran = refresh(project, "parts", key)
        assert ran.ok, ran.problems()
        assert ran.materialized("shards")[key]["files"] == 2
    first, second = (project.layout("parts").of_slice(key) for key in DAYS[:2])
    for split in splits:
        of_first, of_second = (Manifest.load(layout.merged_path(split)) for layout in (first, second))
        assert of_first and of_second and 0 <= of_second.records - of_first.records <= 1  # a row stays in its split


def test_a_function_is_called_with_the_slice(project: Project) -> None:
    (project.root / "events_of.py").write_text("def rows(slice):\n    yield {'slice': slice, 'number': len(slice)}\n")
    project.dataset("named", source={"callable": "events_of:rows({slice})"}, slices={"values": ["us", "eu"]}, shards=1)
    for key in ("us", "eu"):
        assert refresh(project, "named", key).ok
        import tfr_assets

        (record,) = tfr_assets.open(project.layout("named").of_slice(key).folder)
        assert record == {"number": 2, "slice": key}


def test_two_runs_over_one_slice_are_held_apart_and_over_two_slices_are_not(project: Project, daily: str) -> None:
    path = project.layout(daily).of_slice(DAYS[0]).lock
    held = lock(path)
    assert held is not None
    assert refresh(project, daily, DAYS[1]).ok
    with _unlocked_once_waited_for(project, held):
        ran = refresh(project, daily, DAYS[0])
    assert ran.ok
    waited = [event.message for event in ran.events if (event.message or "").startswith(WAITING)]
    assert len(waited) == 1


@contextmanager
def _unlocked_once_waited_for(project: Project, held: int) -> Iterator[None]:
    known = {run.run_id for run in project.instance.get_runs()}

    def waits() -> bool:
        new = [run.run_id for run in project.instance.get_runs() if run.run_id not in known]
        logs = [log for run_id in new for log in project.instance.all_logs(run_id)]
        return any(((log.dagster_event and log.dagster_event.message) or "").startswith(WAITING) for log in logs)

    def unlock_then() -> None:
        wait_for(waits)
        unlock(held)

    thread = threading.Thread(target=unlock_then)
    thread.start()
    yield
    thread.join()


def test_the_queue_counts_runs_by_slice() -> None:
    tags = {DATASET_TAG: "events", SLICES_TAG: "daily"}
    run = {"dagster/partition": DAYS[0]}
    assert queue_tag(tags, run) == "events/2026-03-01"
    assert queue_tag({**tags, DATASET_TAG: "events/2026-03-01"}, run) == "events/2026-03-01"  # a run launched again
    assert queue_tag(tags, {}) == "events"
    assert queue_tag({DATASET_TAG: "flights"}, {"dagster/partition": KEYS[0]}) == "flights"


def test_a_schedule_refreshes_the_last_slice_that_is_over(project: Project) -> None:
    make_daily(project, "ticking", schedule="0 6 * * *")

    def tick(hour: int) -> tuple[list[dg.RunRequest], str]:
        return scheduled(project, "ticking", datetime(2026, 3, 3, hour, tzinfo=UTC))

    (request,), _ = tick(6)
    assert request.partition_key == DAYS[1]
    assert project.run("Refresh_ticking", tags={**request.tags, "dagster/partition": DAYS[1]}).ok
    assert tick(7) == ([], "nothing new: raw files and settings are those that all files were made from")
    day(project, "ticking", DAYS[1], 7)
    (request,), _ = tick(8)
    assert request.partition_key == DAYS[1]


def scheduled(project: Project, name: str, at: datetime) -> tuple[list[dg.RunRequest], str]:
    """What a schedule asks for at a time, or why it asks for nothing."""
    schedule = project.repository().get_schedule_def(f"{name}_schedule")
    with dg.build_schedule_context(
        instance=project.instance, scheduled_execution_time=at, repository_def=project.repository()
    ) as context:
        ticked = schedule.evaluate_tick(context)
    return list(ticked.run_requests or []), ticked.skip_message or ""


def test_a_schedule_is_not_held_up_by_the_slice_before_and_makes_what_was_left_out(project: Project) -> None:
    make_daily(project, "late", schedule="0 6 * * *")
    assert refresh(project, "late", DAYS[0]).ok
    running = project.instance.create_run_for_job(
        project.repository().get_job("Refresh_late"),
        tags={DATASET_TAG: f"late/{DAYS[1]}", SCHEDULE_NAME_TAG: "late_schedule"},
        status=dg.DagsterRunStatus.STARTED,
    )

    def tick(day: int) -> list[str | None]:
        return [each.partition_key for each in scheduled(project, "late", datetime(2026, 3, day, 6, tzinfo=UTC))[0]]

    assert tick(3) == []  # the run is working on that slice
    assert tick(4) == [DAYS[2]]
    project.instance.report_run_canceled(running)
    assert tick(5) == [DAYS[1], DAYS[2], "2026-03-04"]


def test_a_schedule_refreshes_all_slices_with_names(project: Project) -> None:
    for key in ("us", "eu"):
        (project.root / "raw" / "places" / key).mkdir(parents=True)
        project.table(f"places/{key}/part", numbers(5))
    attributes = {"source": "raw/places/{slice}/*.parquet", "slices": {"values": ["us", "eu"]}, "shards": 1}
    project.dataset("places", schedule="0 6 * * *", **attributes)
    at = datetime(2026, 3, 3, 6, tzinfo=UTC)
    requests, _ = scheduled(project, "places", at)
    assert [request.partition_key for request in requests] == ["us", "eu"]
    assert project.run("Refresh_places", tags={**requests[0].tags, "dagster/partition": "us"}).ok
    assert [request.partition_key for request in scheduled(project, "places", at)[0]] == ["eu"]


def test_a_watch_makes_new_and_changed_slices_once_they_stay_as_they_are(project: Project) -> None:
    make_daily(project, "watched", watch=60)
    assert refresh(project, "watched", DAYS[0]).ok
    cursor: str | None = None

    def tick() -> list[str]:
        nonlocal cursor
        sensor = project.repository().get_sensor_def("watched_raw_changed")
        with dg.build_sensor_context(
            instance=project.instance, cursor=cursor, repository_def=project.repository()
        ) as context:
            ticked = sensor.evaluate_tick(context)
        cursor = ticked.cursor
        assert all(request.tags[DATASET_TAG] == f"watched/{request.partition_key}" for request in ticked.run_requests)
        return [str(request.partition_key) for request in ticked.run_requests or []]

    assert tick() == []  # they may be growing
    assert tick() == [DAYS[1]]  # the first one was made of these files
    assert tick() == []  # asked for already
    day(project, "watched", DAYS[0], 5)
    assert tick() == []
    day(project, "watched", DAYS[0], 6)  # growing
    assert tick() == []
    waiting = project.instance.create_run_for_job(
        project.repository().get_job("Refresh_watched"),
        tags={DATASET_TAG: f"watched/{DAYS[0]}"},
        status=dg.DagsterRunStatus.STARTED,
    )
    assert tick() == []  # a run is working on it
    project.instance.report_run_canceled(waiting)
    assert tick() == [DAYS[0]]
    assert tick() == []
    next((project.root / "raw" / "watched" / "2026" / "03" / "01").iterdir()).unlink()
    assert tick() == []
    assert tick() == [DAYS[0]]  # the run says that all its files are gone
    assert tick() == []


def test_an_empty_slice_is_refused_or_allowed(project: Project) -> None:
    make_daily(project, "gaps", splits={"train": 0.5, "test": 0.5})
    empty = refresh(project, "gaps", DAYS[2])
    assert "add `empty: allow` to `slices`" in str(empty.problems())
    day(project, "gaps", DAYS[2], 0)  # a file without rows is no data either
    assert "has no rows. If a slice may have none, add `empty: allow`" in str(
        refresh(project, "gaps", DAYS[2]).problems()
    )
    (project.root / "raw" / "gaps" / "2026" / "03" / "03" / "part.parquet").unlink()
    slices = {"daily": DAYS[0], "empty": "allow"}
    make_daily(project, "gaps", splits={"train": 0.5, "test": 0.5}, slices=slices)
    first = refresh(project, "gaps", DAYS[2])
    assert "no other slice shows which columns its files would have" in str(first.problems())
    for key in (DAYS[1], DAYS[2]):
        ran = refresh(project, "gaps", key)
        assert ran.ok, ran.problems()
    assert ran.materialized("raw")[DAYS[2]]["dagster/row_count"] == 0
    assert project.run("Verify_gaps", tags={"dagster/partition": DAYS[2]}).ok
    import tfr_assets

    root = project.root / "data"
    both = tfr_assets.open("gaps", root=root, slices=(DAYS[1], DAYS[2]))
    assert len(both) == len(tfr_assets.open("gaps", root=root, slices=DAYS[1])) > 0
    day(project, "gaps", DAYS[2], 30)
    assert refresh(project, "gaps", DAYS[2]).ok
    assert len(tfr_assets.open("gaps", root=root, slices=DAYS[2])) > 0


def test_records_that_do_not_fit_those_of_other_slices_are_refused_before_one_is_written(project: Project) -> None:
    folder = project.root / "raw" / "fits"
    folder.mkdir()

    def part(key: str, **columns: Any) -> None:
        project.table(f"fits/{key}", pa.table(columns))

    part(DAYS[0], id=[1, 2], price=[1.5, 2.5])
    part(DAYS[1], id=[3, 4], price=["a", "b"])
    part(DAYS[2], id=[5, 6], price=[1.0, None], more=["x", "y"])
    settings = {"source": "raw/fits/{slice}.parquet", "slices": {"daily": DAYS[0]}, "shards": 1}
    project.dataset("fits", **settings)
    assert refresh(project, "fits", DAYS[0]).ok
    ran = refresh(project, "fits", DAYS[1])
    says = str(ran.problems())
    assert "the records of slice 2026-03-02 do not fit those of slice 2026-03-01; nothing was written" in says
    assert "feature 'price' is double of shape () in the one, string of shape () in the other" in says
    assert not project.layout("fits").of_slice(DAYS[1]).shards.exists()
    assert refresh(project, "fits", DAYS[2]).ok  # another column, and nulls
    import tfr_assets

    records = list(tfr_assets.open("fits", root=project.root / "data"))
    assert [record["more"] for record in records] == [None, None, "x", "y"]
    part(DAYS[1], id=[3, 4])
    assert "Feature 'price' is missing in '2026-03-02'" in str(refresh(project, "fits", DAYS[1]).problems())
    part(DAYS[1], id=[3, 4], price=[3.5, 4.5])  # without the column that came later
    assert refresh(project, "fits", DAYS[1]).ok
    project.dataset("fits", **settings, features={"drop": ["price"]})  # all slices may be made again, one by one
    assert refresh(project, "fits", DAYS[1]).ok


def test_of_slices_that_are_first_written_at_the_same_time_the_second_one_is_held_against_the_first(
    project: Project,
) -> None:
    (project.root / "raw" / "pair").mkdir()
    project.table("pair/2026-03-01", pa.table({"price": [1.5, 2.5]}))
    project.table("pair/2026-03-02", pa.table({"price": ["a", "b"]}))
    project.dataset("pair", source="raw/pair/{slice}.parquet", slices={"daily": DAYS[0]}, shards=1)
    (key,) = shard_keys("train", 1)
    order = project.fault(key, "wait")
    first = start_run(project, "Refresh_pair", [DAYS[0]])
    try:
        wait_for(lambda: (project.root / "faults" / f"{key}.waiting").exists())
        second = refresh(project, "pair", DAYS[1])
    finally:
        order.unlink()
        assert first.wait() == 0
    assert "the records of slice 2026-03-02 do not fit those of slice 2026-03-01" in str(second.problems())
    assert project.layout("pair").of_slice(DAYS[0]).merged_path().is_file()
    project.table("pair/2026-03-01", pa.table({"price": ["c", "d"]}))  # the second one was right
    assert refresh(project, "pair", DAYS[0]).ok
    assert refresh(project, "pair", DAYS[1]).ok


def test_a_pattern_that_matches_files_of_two_slices_is_refused(project: Project) -> None:
    project.table("eu_1", numbers(3))
    project.table("eu_west_1", numbers(3))
    project.dataset("regions", source="raw/{slice}_*.parquet", slices={"values": ["eu", "eu_west"]}, shards=1)
    ran = refresh(project, "regions", "eu")
    assert "raw/eu_west_1.parquet: belongs to the slice eu and to eu_west, says " in str(ran.problems())
    assert "raw/eu_west_1.parquet: belongs to the slice eu_west and to eu" in str(
        refresh(project, "regions", "eu_west").problems()
    )
    project.dataset("regions", source="raw/{slice}_[0-9].parquet", slices={"values": ["eu", "eu_west"]}, shards=1)
    assert refresh(project, "regions", "eu").ok and refresh(project, "regions", "eu_west").ok


def test_the_sensor_current_looks_at_every_slice_that_was_made(project: Project) -> None:
    make_daily(project, "aging")

    def tick(cursor: str | None) -> tuple[str | None, str]:
        sensor = project.repository().get_sensor_def("aging_current")
        with dg.build_sensor_context(instance=project.instance, cursor=cursor) as context:
            ticked = sensor.evaluate_tick(context)
        assert not ticked.run_requests
        return ticked.cursor, ticked.skip_message or ""

    assert tick(None)[1] == "no slice has changed since the last look"
    for key in DAYS[:2]:
        assert refresh(project, "aging", key).ok
    cursor, said = tick(None)
    assert said == "All 2 slices are those of the current settings and raw data"
    assert tick(cursor) == (cursor, "no slice has changed since the last look")
    late = day(project, "aging", DAYS[0], 5).rename(project.root / "raw/aging/2026/03/01/late.parquet")
    day(project, "aging", DAYS[0], 100)
    cursor, said = tick(cursor)
    assert said.startswith(f"Of 2 slices, 1 are outdated. {DAYS[0]}: its raw files have changed since it was made.")
    late.unlink()
    assert refresh(project, "aging", DAYS[0]).ok
    cursor, said = tick(cursor)
    assert said == "All 2 slices are those of the current settings and raw data"
    project.layout("aging").of_slice(DAYS[1]).shard_path(KEYS[0]).unlink()
    cursor, said = tick(cursor)
    assert said.startswith(f"Of 2 slices, 1 are outdated. {DAYS[1]}: Of 2 shards, 1 missing: {KEYS[0]}.")
    key = dg.AssetCheckKey(dg.AssetKey(["aging", "shards"]), "current")
    (record,) = project.instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    assert record.evaluation and record.evaluation.description == said and not record.evaluation.passed
    project.yaml("aging").write_text(project.yaml("aging").read_text().replace("shards: 2", "shards: 1"))
    assert tick(cursor)[1].startswith("Of 2 slices, 2 are outdated. 2026-03-01: ")


def test_a_dataset_without_slices_is_as_it_was(project: Project) -> None:
    project.table("plain", numbers())
    project.dataset("plain", shards=2)
    graph = project.repository().asset_graph
    assert graph.get(dg.AssetKey(["plain", "raw"])).partitions_def is None
    assert graph.get(dg.AssetKey(["plain", "merged"])).partitions_def is None
    shards = graph.get(dg.AssetKey(["plain", "shards"]))
    assert shards.partitions_def.get_partition_keys() == KEYS
    assert shards.tags[DATASET_TAG] == "plain" and SLICES_TAG not in shards.tags
    assert project.refresh("plain", 2).ok
    found = sorted(path.name for path in project.layout("plain").folder.iterdir())
    assert found == [".lock", "merged", "raw", "report.html", "shards"]


@given(
    kind=st.sampled_from(["hourly", "daily", "weekly", "monthly"]),
    start=st.datetimes(datetime(2023, 1, 1), datetime(2026, 1, 1)),
    hours=st.integers(0, 24 * 70),
)
@settings(max_examples=60, deadline=None)
def test_the_keys_are_those_of_dagsters_partitions(kind: str, start: datetime, hours: int) -> None:
    whole = {"hour": start.hour if kind == "hourly" else 0, "minute": 0, "second": 0, "microsecond": 0}
    begin = start.replace(**whole, day=1 if kind == "monthly" else start.day)
    slices = Slices(**{kind: begin})
    now = begin.replace(tzinfo=UTC) + timedelta(hours=hours, minutes=30)
    assert slices.all_keys(now) == partitions_of(slices, "events").get_partition_keys(now)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"slices": {"daily": "2026-01-01"}}, "slices: nothing in the source says where a slice is"),
        ({"source": "raw/{slice}/"}, "slices: missing, but the source has a {slice}"),
        ({"bench": {"readers": {}}}, "bench: does not work with `slices`"),
    ],
)
def test_what_cannot_be_is_named(project: Project, attributes: dict[str, Any], says: str) -> None:
    if "source" not in attributes and "slices" not in attributes:
        attributes = {"source": "raw/{slice}/", "slices": {"daily": "2026-01-01"}} | attributes
    made = TFRecordDataset.from_attributes_dict(attributes={"source": "raw/"} | attributes)
    with pytest.raises(ConfigError) as caught:
        made.dataset("wrong", project.root)
    assert says in str(caught.value)


def test_shards_and_merged_follow_raw_slice_by_slice(project: Project) -> None:
    make_daily(project, "led", automation="on_change")
    for key in DAYS[:2]:
        assert refresh(project, "led", key).ok
    definitions = project.repository()
    assert definitions.has_sensor_def("led_follows_raw")
    alone = dg.Definitions(assets=definitions.asset_graph.assets_defs)
    raw, shards, merged = (dg.AssetKey(["led", part]) for part in ("raw", "shards", "merged"))
    seen = dg.evaluate_automation_conditions(alone, instance=project.instance)
    for rows, expected in ((100, set()), (120, {DAYS[0]})):
        day(project, "led", DAYS[0], rows)
        assert refresh(project, "led", DAYS[0], assets=[raw]).ok
        seen = dg.evaluate_automation_conditions(alone, instance=project.instance, cursor=seen.cursor)
        assert set(seen.get_requested_partitions(shards)) == expected
        assert set(seen.get_requested_partitions(merged)) == set()  # shards come first
    assert project.run("Refresh_led", tags={"dagster/partition": DAYS[0]}, assets=[shards]).ok
    seen = dg.evaluate_automation_conditions(alone, instance=project.instance, cursor=seen.cursor)
    assert set(seen.get_requested_partitions(merged)) == {DAYS[0]}
