"""`tfr verify|inspect --slices` of a dataset of slices at a URL, and at a path."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.components.project import Project
from tests.storage.test_list_store import Command, project, tfr
from tests.storage.test_write_to_store import contents
from tfr_assets.storage.objects.folder import ObjectFolder

__all__ = ["project", "tfr"]  # fixtures

ROWS = {"eu": 10, "us": 20}


@pytest.fixture
def places(one_bucket: str, project: Project, tmp_path: Path) -> dict[str, str]:
    """The same dataset of slices at a URL, and at a path."""
    for number, (key, count) in enumerate(ROWS.items()):
        (folder := project.root / "raw" / key).mkdir()
        pq.write_table(
            pa.table({"id": pa.array(range(100 * number, 100 * number + count), pa.int64())}), folder / "p.parquet"
        )
    project.dataset("parts", source="raw/{slice}/*.parquet", slices={"values": ["eu", "us", "asia"]}, shards=1)
    for key in ROWS:
        assert project.run("Refresh_parts", tags={"dagster/partition": key}).ok
    for name, content in contents(f"{one_bucket}/lake/parts").items():
        path = tmp_path / "copy" / "parts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return {"url": f"{one_bucket}/lake/parts", "path": "copy/parts"}


@pytest.mark.parametrize("kind", ["url", "path"])
def test_slices_of_what_lies_anywhere_are_verified_and_inspected(
    places: dict[str, str], tfr: Command, tmp_path: Path, kind: str
) -> None:
    place = places[kind]
    shown = tfr("inspect", place, "--slices", "us", "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert [each["records"] for each in found] == [20, 20]
    assert all(each["path"].startswith(f"{place}/slices/us/") for each in found)
    last = json.loads(tfr("verify", place, "--slices", "eu", "--json").stdout)
    assert {each["path"].removeprefix(f"{place}/slices/eu/").partition("/")[0] for each in last} == {"shards", "merged"}
    every = tfr("verify", place, "--slices", "all")
    assert every.returncode == 0 and "parts: left out, because not made yet: asia" in every.stderr
    assert "merged: 30 intact records" in every.stdout and "shards: 30 intact records" in every.stdout
    for choice, says in {
        "mars": "'mars'",
        "asia": "of dataset 'parts', 1 of 1 slices are not there: asia",
    }.items():
        refused = tfr("verify", place, "--slices", choice)
        assert refused.returncode in (1, 2) and says in refused.stderr and "Traceback" not in refused.stderr
    single = tfr("inspect", f"{place}/slices/us", "--slices", "us")
    said = " ".join(single.stderr.split())
    assert single.returncode == 2 and f"{place}/slices/us is no dataset with slices; leave it out" in said


def test_damage_in_a_slice_is_found_there_and_only_there(places: dict[str, str], tfr: Command) -> None:
    folder = ObjectFolder(places["url"])
    shard = "slices/us/shards/parts-train.tfrecord-00000-of-00001"
    whole = folder.get(shard) or b""
    folder.put(shard, whole[:50] + b"?" + whole[51:])
    folder.put("slices/us/shards/parts-train.tfrecord-00000-of-00007", whole)
    assert tfr("verify", folder.url, "--slices", "eu").returncode == 0
    done = tfr("verify", folder.url, "--slices", "us")
    assert done.returncode == 1 and f"{folder.url}/{shard}" in done.stdout
    assert "it was left by an earlier run; run again, which removes it" in done.stdout
