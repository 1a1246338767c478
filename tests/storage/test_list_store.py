"""`tfr list URL`, and commands that take the URL of a dataset of the project in place of its name."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfr_assets
from tests.components.project import Project, environment
from tfr_assets.storage.objects.folder import ObjectFolder

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tfr(tmp_path: Path) -> Command:
    """Runs `tfr` where there is no project."""

    def run(*arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "tfr_assets.cli", *arguments],
            cwd=tmp_path, env={**os.environ, **env}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def rows(count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(count), pa.int64())})


@pytest.fixture
def project(one_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TFR_SPOOL", str(tmp_path / "spool"))
    (root := tmp_path / "project").mkdir()
    monkeypatch.syspath_prepend(str(root))
    return Project(root, data=f"{one_bucket}/lake")


def test_the_datasets_below_a_url_are_listed(bucket: str, tfr: Command) -> None:
    tfr_assets.write(rows(30), f"{bucket}/lake/names", shards=3)
    tfr_assets.write(rows(50), f"{bucket}/lake/deep/er.tfrecord")
    tfr_assets.write(rows(7), f"{bucket}/lake/old_manifest/few.tfrecord")
    ObjectFolder(f"{bucket}/lake").put("readme.txt", b"no dataset")
    done = tfr("list", f"{bucket}/lake", "--json")
    assert done.returncode == 0, done.stderr
    found = {each["name"]: each for each in json.loads(done.stdout)}
    assert found.keys() == {"names", "deep", "old_manifest"}
    assert (found["old_manifest"]["rows"], found["old_manifest"]["shards"]) == (7, 1)
    assert (found["names"]["rows"], found["names"]["shards"], found["names"]["shards_written"]) == (30, 3, 3)
    assert (found["deep"]["rows"], found["deep"]["shards"], found["deep"]["merged"]) == (50, 1, False)
    assert found["names"]["folder"] == f"{bucket}/lake/names"
    ObjectFolder(f"{bucket}/lake/names").delete(["names-train.tfrecord-00001-of-00003"])
    shown = tfr("list", f"{bucket}/lake/names/", COLUMNS="200").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("names")]
    assert "2 of 3" in line and " 20 " in line and f"{bucket}/lake/names" in line and "source" not in shown


def listed(tfr: Command, url: str) -> dict[str, dict[str, Any]]:
    done = tfr("list", url, "--json")
    assert done.returncode == 0, done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)}


def test_datasets_in_one_folder_are_told_apart(one_bucket: str, tfr: Command, tmp_path: Path) -> None:
    for name, count, shards in (("flights", 30, 3), ("names", 50, 2)):
        tfr_assets.write(rows(count), tmp_path / name, shards=shards)
        for path in (tmp_path / name).rglob("*"):
            if path.is_file() and path.name != "feature_spec.json":
                key = path.relative_to(tmp_path / name).as_posix()
                ObjectFolder(f"{one_bucket}/lake/both").put(key, path.read_bytes())
    tfr_assets.write(rows(3), f"{one_bucket}/lake/few/a.tfrecord")
    tfr_assets.write(rows(4), f"{one_bucket}/lake/few/b.tfrecord")
    found = listed(tfr, f"{one_bucket}/lake")
    assert {name: (each["rows"], each["shards"], each["shards_written"]) for name, each in found.items()} == {
        "both/flights": (30, 3, 3), "both/names": (50, 2, 2), "few/a": (3, 1, 1), "few/b": (4, 1, 1),
    }  # fmt: skip
    assert found["both/names"]["folder"] == f"{one_bucket}/lake/both"
    assert listed(tfr, f"{one_bucket}/lake/both").keys() == {"flights", "names"}


def test_what_an_earlier_number_of_shards_left_is_not_added(one_bucket: str, tfr: Command) -> None:
    folder = ObjectFolder(f"{one_bucket}/names")
    tfr_assets.write(rows(30), folder.url, shards=3)
    kept = {key: folder.get(key) or b"" for key in folder.walk() if "00001-of-00003" in key}
    whole = {key: folder.get(key) or b"" for key in folder.walk() if "-of-00003" in key}
    tfr_assets.write(rows(40), folder.url, shards=2)
    for key, content in kept.items():
        folder.put(key, content)
    (found,) = listed(tfr, folder.url).values()
    assert (found["rows"], found["shards"], found["shards_written"]) == (40, 2, 2)
    for key, content in whole.items():
        folder.put(key, content)
    (found,) = listed(tfr, folder.url).values()
    assert found["rows"] is None  # readers ask which of the two is meant


def test_adopted_files_are_one_set(one_bucket: str, tfr: Command, tmp_path: Path) -> None:
    for number in range(3):
        tfr_assets.write(rows(10), tmp_path / "made.tfrecord")
        (folder := tmp_path / "foreign").mkdir(exist_ok=True)
        (tmp_path / "made.tfrecord").rename(folder / f"part-{number}.tfrecord")
    tfr_assets.adopt(folder)
    for path in filter(Path.is_file, folder.rglob("*")):
        ObjectFolder(f"{one_bucket}/foreign").put(path.relative_to(folder).as_posix(), path.read_bytes())
    ObjectFolder(f"{one_bucket}/foreign").delete(["part-1.tfrecord"])
    (found,) = listed(tfr, f"{one_bucket}/foreign").values()
    assert (found["rows"], found["shards"], found["shards_written"]) == (20, 3, 2)


def test_a_project_is_listed_without_it_and_its_slices(one_bucket: str, project: Project, tfr: Command) -> None:
    project.table("sales", rows(100))
    project.dataset("sales", shards=2)
    assert project.refresh("sales", 2).ok
    for number, key in enumerate(("eu", "us"), 1):
        (folder := project.root / "raw" / key).mkdir()
        pq.write_table(rows(10 * number), folder / "part.parquet")
    project.dataset("parts", source="raw/{slice}/*.parquet", slices={"values": ["eu", "us"]}, shards=1)
    for key in ("eu", "us"):
        assert project.run("Refresh_parts", tags={"dagster/partition": key}).ok
    parts, sales = json.loads(tfr("list", one_bucket, "--json").stdout)
    assert (sales["name"], sales["rows"], sales["shards_written"], sales["merged"]) == ("lake/sales", 100, 2, True)
    assert (parts["name"], parts["rows"], parts["slices_made"], parts["merged"]) == ("lake/parts", 30, 2, True)
    assert parts["folder"] == f"{one_bucket}/lake/parts"
    lines = json.loads(tfr("list", f"{one_bucket}/lake", "--slices", "--json").stdout)
    assert {line["name"]: line["rows"] for line in lines} == {
        "parts/slices/eu": 10, "parts/slices/us": 20, "sales": 100,
    }  # fmt: skip


def test_a_dataset_of_the_project_is_planned_and_run_by_its_url(one_bucket: str, project: Project) -> None:
    project.table("sales", rows(100))
    project.dataset("sales", shards=2)
    home = {"DAGSTER_HOME": str(project.root / "instance"), "DAGSTER_DISABLE_TELEMETRY": "1"}

    def tfr(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "tfr_assets.cli", *arguments]
        env = {**os.environ, **environment(project), **home}
        return subprocess.run(command, cwd=project.root, env=env, capture_output=True, text=True, check=False)

    planned = tfr("plan", f"{one_bucket}/lake/sales", "--json")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["sales"][0]["rows"] == 100
    refused = tfr("plan", f"{one_bucket}/elsewhere/sales")
    assert refused.returncode == 2 and f"data lies in {one_bucket}/lake." in " ".join(refused.stderr.split())
    unknown = tfr("run", f"{one_bucket}/lake/seles")
    assert unknown.returncode == 2 and "did you mean 'sales'?" in unknown.stderr


def test_a_mistyped_name_is_compared_with_what_lies_in_the_store(one_bucket: str, tfr: Command, tmp_path: Path) -> None:
    tfr_assets.write(rows(5), f"{one_bucket}/lake/flights", shards=1)
    environment = {"TFR_DATA": f"{one_bucket}/lake", "TFR_SPOOL": str(tmp_path / "new")}
    for command in ("inspect", "verify", "export"):
        done = tfr(command, "fligths", *(["x.array_record"] if command == "export" else []), **environment)
        says = f"there is no dataset 'fligths' in {one_bucket}/lake; did you mean 'flights'?"
        assert done.returncode == 2 and says in " ".join(done.stderr.split()), done.stderr
    elsewhere = tfr("inspect", "fligths", **{**environment, "TFR_DATA": f"{one_bucket}/nothing"})
    assert "there is none" in " ".join(elsewhere.stderr.split())


def test_what_cannot_be_listed_is_said_in_a_sentence(one_bucket: str, tfr: Command) -> None:
    said = {
        f"{one_bucket}x/lake": f"there is no bucket {one_bucket}x; make it, or correct the URL",
        f"{one_bucket}/nothing": f"there is no dataset, and no TFRecord file with a manifest, below {one_bucket}/noth",
        "ftp://host/lake": "ftp://host/lake: must be a URL that begins with s3://, gs://, az://",
        "lake": "lake: give the URL of a folder in an object store",
    }
    for url, says in said.items():
        done = tfr("list", url)
        assert done.returncode in (1, 2) and says in " ".join(done.stderr.split()), done.stderr
        assert "Traceback" not in done.stderr
