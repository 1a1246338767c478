"""Slices that become more by themselves: a folder each, or what is new in a folder that only grows."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from tests.cli.test_cli_slices import tfr
from tfr_assets.components.config.component import TFRecordDataset
from tfr_assets.errors import ConfigError

from .conftest import numbers
from .project import Project
from .test_components_slices import ids, refresh, scheduled


class Ticks:
    """Evaluates a sensor again and again, each time with the cursor of the time before."""

    def __init__(self, project: Project, sensor: str) -> None:
        self._project, self._sensor, self._cursor = project, sensor, None

    def __call__(self) -> list[dg.RunRequest]:
        sensor = self._project.repository().get_sensor_def(self._sensor)
        instance = self._project.instance
        with dg.build_sensor_context(
            instance, self._cursor, repository_def=self._project.repository(), instance_ref=instance.get_ref()
        ) as context:
            ticked = sensor.evaluate_tick(context)
        self._cursor = ticked.cursor
        self.said = ticked.skip_message or ""
        return list(ticked.run_requests or [])

    def keys(self) -> list[str | None]:
        return [request.partition_key for request in self()]


def folder(project: Project, name: str, key: str, rows: int, start: int = 0) -> Path:
    (project.root / "raw" / name / key).mkdir(parents=True, exist_ok=True)
    return project.table(f"{name}/{key}/part", numbers(rows, start))


def partitions(project: Project, name: str) -> list[str]:
    return sorted(project.instance.get_dynamic_partitions(f"{name}_slices"))


def test_a_new_folder_is_a_new_slice(project: Project) -> None:
    folder(project, "places", "eu", 10)
    source = "raw/places/{slice}/*.parquet"
    project.dataset("places", source=source, slices={"folder": "raw/places"}, shards=1, watch=60, schedule="0 6 * * *")
    watch, current = Ticks(project, "places_raw_changed"), Ticks(project, "places_current")
    assert watch.keys() == [] and partitions(project, "places") == ["eu"]
    assert watch.keys() == ["eu"]
    assert refresh(project, "places", "eu").ok
    folder(project, "places", "region=us", 20, 100)
    (project.root / "raw" / "places" / "_staging").mkdir()
    current()
    assert partitions(project, "places") == ["eu", "region=us"]  # the UI has it, whoever launches it
    at = datetime(2026, 3, 3, 6, tzinfo=UTC)
    assert [request.partition_key for request in scheduled(project, "places", at)[0]] == ["region=us"]
    assert watch.keys() == [] and watch.keys() == ["region=us"] and watch.keys() == []
    ran = refresh(project, "places", "region=us")
    assert ran.ok, ran.problems()
    assert ids(project.layout("places").of_slice("region=us")) == list(range(100, 120))
    import tfr_assets

    root = project.root / "data"
    assert len(tfr_assets.open("places", root=root)) == 30
    assert len(tfr_assets.open("places", root=root, slices=["region=us"])) == 20
    with pytest.raises(ConfigError, match="there is no slice 'asia'; there are eu, region=us"):
        tfr_assets.open("places", root=root, slices="asia")
    for path in (project.root / "raw" / "places" / "eu").iterdir():
        path.unlink()
    (project.root / "raw" / "places" / "eu").rmdir()
    assert project.load("places").slice_keys() == ["eu", "region=us"]  # what was made does not vanish with its raw data
    assert project.run("Verify_places", tags={"dagster/partition": "eu"}).ok


def test_a_slice_that_is_no_folder_fails_with_those_that_are(project: Project) -> None:
    folder(project, "lone", "eu", 10)
    if (wrong := project.root / "raw" / "lone" / "not a name").exists():
        wrong.rmdir()
    project.dataset("lone", source="raw/lone/{slice}/", slices={"folder": "raw/lone"}, shards=1)
    project.instance.add_dynamic_partitions("lone_slices", ["mars"])  # as a person can in the UI
    assert "there is no slice 'mars'; there are eu" in str(refresh(project, "lone", "mars").problems())
    (project.root / "raw" / "lone" / "not a name").mkdir(exist_ok=True)
    says = str(refresh(project, "lone", "eu").problems())
    assert "not a name: cannot be the name of a slice" in says and "Traceback" not in says
    current = Ticks(project, "lone_current")
    assert current.keys() == [] and "not a name: cannot be the name of a slice" in current.said


def test_new_files_of_a_folder_that_only_grows_become_a_slice(project: Project) -> None:
    (project.root / "raw" / "log").mkdir()
    project.dataset("log", source="raw/log/*.parquet", slices={"append": True}, shards=1, watch=60)
    watch = Ticks(project, "log_raw_changed")
    assert watch.keys() == []
    project.table("log/a", numbers(10))
    project.table("log/b", numbers(10, 10))
    assert watch.keys() == [] and "2 new files may still be growing" in watch.said
    project.table("log/b", numbers(12, 10))
    (request,) = watch()
    assert request.partition_key == "000001" and str(request.run_key).startswith("000001 ")
    assert watch.keys() == ["000002"]
    assert watch.keys() == []  # both were asked for
    assert partitions(project, "log") == ["000001", "000002"]
    for key in ("000001", "000002"):
        ran = refresh(project, "log", key)
        assert ran.ok, ran.problems()
    assert ids(project.layout("log").of_slice("000001")) == list(range(10))
    assert ids(project.layout("log").of_slice("000002")) == list(range(10, 22))
    project.table("log/a", numbers(5))  # it should not, but did
    assert watch.keys() == []
    assert watch.keys() == ["000001"]
    again = Ticks(project, "log_raw_changed")  # as after a reset of its cursor
    assert again.keys() == ["000001"]
    assert refresh(project, "log", "000001").ok
    import tfr_assets

    assert len(tfr_assets.open("log", root=project.root / "data")) == 17


def test_the_terminal_makes_slices_of_what_is_new(project: Project) -> None:
    (project.root / "raw" / "lone" / "not a name").mkdir(parents=True, exist_ok=True)
    project.dataset("lone", source="raw/lone/{slice}/", slices={"folder": "raw/lone"}, shards=1)
    folder(project, "shelf", "one", 5)
    project.dataset("shelf", source="raw/shelf/{slice}/*.parquet", slices={"folder": "raw/shelf"}, shards=1)
    (project.root / "raw" / "pile").mkdir()
    project.table("pile/a", numbers(5))
    project.dataset("pile", source="raw/pile/*.parquet", slices={"append": True}, shards=1)
    done = tfr(project, "run", "shelf", "pile", "--slices", "new", "--json")
    assert done.returncode == 0, done.stderr
    assert [(each["dataset"], each["slice"]) for each in json.loads(done.stdout)] == [
        ("shelf", "one"),
        ("pile", "000001"),
    ]
    assert json.loads(tfr(project, "run", "shelf", "pile", "--slices", "new", "--json").stdout) == []
    listed = {row["name"]: row for row in json.loads(tfr(project, "list", "--json").stdout)}
    assert [(listed[name]["slices"], listed[name]["stale"]) for name in ("shelf", "pile")] == [(1, {}), (1, {})]
    assert "not a name: cannot be the name of a slice" in listed["lone"]["error"]  # which leaves the others alone
    wrong = tfr(project, "run", "shelf", "--slices", "two")
    assert wrong.returncode == 2 and "there is no slice 'two'; there are one" in wrong.stderr


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"source": "raw/{slice}/"}, "remove {slice} from the source"),
        ({"source": "raw/*.csv", "schedule": "@daily"}, "schedule: would take files that are still growing"),
        ({"source": {"images": "photos/"}}, "append takes tables in files"),
    ],
)
def test_what_cannot_be_appended_is_named(tmp_path: Path, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TFRecordDataset.from_attributes_dict(attributes={"slices": {"append": True}, **attributes}).dataset(
            "log", tmp_path
        )
    assert message in str(caught.value)
