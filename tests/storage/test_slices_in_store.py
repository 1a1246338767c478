"""Slices whose raw data is in an object store: a folder each, and files that are only added."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfr_assets
from tests.components.project import Project
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.writing.slices.append import append_new


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Project(tmp_path)


def put(url: str, name: str, first: int, rows: int = 20) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array(range(first, first + rows), pa.int64())}), sink)
    ObjectFolder(url).put(name, sink.getvalue().to_pybytes())


def test_each_folder_of_a_bucket_is_a_slice(one_bucket: str, project: Project) -> None:
    url = f"{one_bucket}/events"
    for number, key in enumerate(("eu", "us")):
        put(url, f"{key}/part.parquet", 100 * number)
    project.dataset("events", source=f"{url}/{{slice}}/*.parquet", slices={"folder": url}, shards=1)
    whole = project.load("events")
    assert whole.slice_keys() == ["eu", "us"]
    put(url, "asia/part.parquet", 500)
    assert whole.slice_keys() == ["asia", "eu", "us"]
    project.instance.add_dynamic_partitions("events_slices", ["asia"])
    ran = project.run("Refresh_events", tags={"dagster/partition": "asia"})
    assert ran.ok, ran.problems()
    made = tfr_assets.open("events", root=project.root / "data", slices="asia")
    assert [record["id"] for record in made] == list(range(500, 520))


def test_new_objects_become_a_slice(one_bucket: str, project: Project) -> None:
    url = f"{one_bucket}/log"
    put(url, "a.parquet", 0)
    project.dataset("log", source=f"{url}/*.parquet", slices={"append": True}, shards=1)
    whole = project.load("log")
    left = append_new(whole, {})
    assert list(left) == [f"{url}/a.parquet"] and whole.slice_keys() == []
    put(url, "b.parquet", 20)
    assert list(append_new(whole, left)) == [f"{url}/b.parquet"] and whole.slice_keys() == ["000001"]
    append_new(whole)
    project.instance.add_dynamic_partitions("log_slices", whole.slice_keys())
    for number, key in enumerate(("000001", "000002")):
        ran = project.run("Refresh_log", tags={"dagster/partition": key})
        assert ran.ok, ran.problems()
        made = tfr_assets.open("log", root=project.root / "data", slices=[key])
        assert [record["id"] for record in made] == list(range(20 * number, 20 * number + 20))
