"""`publish:` in YAML: a refresh puts the dataset into an object store, and what fails says so in Dagster."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import tfr_assets
from tests.components.project import Project, environment
from tests.storage.servers import SECRET
from tests.storage.test_publish import expected, ids
from tests.storage.test_write_to_store import contents
from tfr_assets import TFRecordDataset
from tfr_assets.storage.objects.folder import ObjectFolder

ROWS = 300


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Project(tmp_path)


def rows(first: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + ROWS), pa.int64())})


def test_a_refresh_publishes_what_it_made(one_bucket: str, project: Project) -> None:
    url = f"{one_bucket}/lake/sales"
    project.table("sales", rows())
    project.dataset("sales", shards=2, publish=url)
    ran = project.refresh("sales", 2)
    assert ran.ok, ran.problems()
    folder = project.layout("sales").folder
    assert {key: content for key, content in contents(url).items() if key != "report.html"} == {
        key: content for key, content in expected(folder).items() if key != "report.html"
    }
    assert ids(url) == list(range(ROWS))
    shown = ran.materialized("published")[None]
    assert (shown["dagster/uri"], shown["files_sent"], shown["files_kept"]) == (url, 3, 0)
    again = project.refresh("sales", 2)
    assert again.ok and again.materialized("published")[None]["files_sent"] == 0
    project.table("sales", rows(ROWS))
    assert project.refresh("sales", 2).ok
    assert ids(url) == list(range(ROWS, 2 * ROWS))
    assert all(report.ok for report in tfr_assets.verify(url))
    assert not any(SECRET.encode() in path.read_bytes() for path in project.root.rglob("*") if path.is_file())


def test_each_slice_is_published_in_a_folder_of_its_own(one_bucket: str, project: Project) -> None:
    url = f"{one_bucket}/lake/parts"
    for number, key in enumerate(("eu", "us")):
        project.table(f"parts_{key}", rows(number * ROWS))
    source, slices = "raw/parts_{slice}.parquet", {"values": ["eu", "us"]}
    project.dataset("parts", source=source, slices=slices, shards=2, publish=url)
    for number, key in enumerate(("eu", "us")):
        ran = project.run("Refresh_parts", tags={"dagster/partition": key})
        assert ran.ok, ran.problems()
        assert ran.materialized("published")[key]["dagster/uri"] == f"{url}/slices/{key}"
        assert ids(f"{url}/slices/{key}") == list(range(number * ROWS, (number + 1) * ROWS))
    assert all(report.ok for report in tfr_assets.verify(f"{url}/slices/eu"))
    again = project.run("Refresh_parts", tags={"dagster/partition": "eu"})
    assert again.ok and again.materialized("published")["eu"]["files_sent"] == 0


def test_a_store_that_refuses_fails_the_step_with_one_sentence(one_bucket: str, project: Project) -> None:
    project.table("sales", rows())
    project.dataset("sales", shards=2, publish=f"{one_bucket}x/sales")
    ran = project.refresh("sales", 2)
    assert not ran.ok and set(ran.materialized("merged")) == {None}
    assert f"there is no bucket {one_bucket}x; make it, or correct the URL" in ran.problems()["sales__published"]


def test_damaged_shards_are_not_published(one_bucket: str, project: Project) -> None:
    project.table("sales", rows())
    project.dataset("sales", shards=2, publish=f"{one_bucket}/sales")
    assert project.refresh("sales", 2).ok
    before = contents(f"{one_bucket}/sales")
    shard = project.layout("sales").shard_path("train-00001-of-00002")
    shard.write_bytes(shard.read_bytes()[:-1])
    ObjectFolder(f"{one_bucket}/sales").delete([f"shards/manifest/{shard.name}.json"])
    from dagster import AssetKey

    ran = project.run("Refresh_sales", assets=[AssetKey(["sales", "published"])])
    assert not ran.ok
    assert contents(f"{one_bucket}/sales").keys() <= before.keys()
    assert f"shards/manifest/{shard.name}.json" not in contents(f"{one_bucket}/sales")


def test_tfr_run_publishes(one_bucket: str, project: Project) -> None:
    project.table("sales", rows())
    project.dataset("sales", shards=2, publish=f"{one_bucket}/sales")
    command = [sys.executable, "-m", "tfr_assets.cli", "run", "sales"]
    settings = {"DAGSTER_HOME": str(project.root / "instance"), "DAGSTER_DISABLE_TELEMETRY": "1"}
    env = {**os.environ, **environment(project), **settings}
    done = subprocess.run(command, cwd=project.root, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "published" in done.stdout and SECRET not in done.stdout + done.stderr
    assert ids(f"{one_bucket}/sales") == list(range(ROWS))


@pytest.mark.parametrize("url", ["/data", "https://x/y", "s3:///x", f"s3://me:{SECRET}@bucket/x", 3])
def test_what_is_no_place_is_refused(url: object) -> None:
    with pytest.raises(Exception, match=r"(?s)publish.*s3://"):
        TFRecordDataset.from_attributes_dict(attributes={"source": "x.parquet", "publish": url})
