"""A new dataset by the commands that the README names."""

import json
import subprocess
import sys

import pytest

from tfr_assets.components.config.fields import DatasetOptions

from .conftest import numbers
from .project import Project, environment

SCAFFOLD = ("scaffold", "defs", "tfr_assets.TFRecordDataset")


def dg_command(project: Project, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", "from dagster_dg_cli.cli import main; main()", *arguments]
    env = environment(project) | {"DAGSTER_DISABLE_TELEMETRY": "1", "COLUMNS": "200"}
    return subprocess.run(command, cwd=project.root, env=env, capture_output=True, text=True, timeout=120)


def test_a_dataset_is_scaffolded_checked_and_refreshed_without_an_edit(project: Project) -> None:
    project.table("fresh", numbers(10))
    done = dg_command(project, *SCAFFOLD, "fresh", "--source", "raw/fresh.parquet", "--shards", "2")
    assert done.returncode == 0, done.stderr
    yaml = (project.root / project.package / "defs" / "fresh" / "defs.yaml").read_text()
    assert all(f"{field}:" in yaml for field in DatasetOptions.model_fields)  # most of them behind a `#`
    done = dg_command(project, "check", "yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.refresh("fresh", 2).ok


def test_what_is_scaffolded_without_a_source_says_what_to_change(project: Project) -> None:
    assert dg_command(project, *SCAFFOLD, "later").returncode == 0
    yaml = (project.root / project.package / "defs" / "later" / "defs.yaml").read_text()
    assert "\n  source: raw/CHANGE_ME.parquet\n" in yaml
    assert project.repository().has_job("Refresh_later")


def test_a_bad_name_is_refused_and_leaves_nothing_behind(project: Project) -> None:
    done = dg_command(project, *SCAFFOLD, "my-data")
    assert done.returncode != 0
    assert "use letters, digits and underscores only" in done.stderr
    assert not (project.root / project.package / "defs" / "my-data").exists()


def test_the_component_is_listed_with_its_fields(project: Project) -> None:
    done = dg_command(project, "list", "components", "--package", "tfr_assets", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["items"]
    assert found["key"] == "tfr_assets.TFRecordDataset"
    assert found["summary"].startswith("Tables in, verified TFRecord shards out")


# with --check-yaml, dg looks at one file of each component, and loads the definitions only if that one is fine
@pytest.mark.parametrize("option", ["--check-yaml", "--no-check-yaml"])
def test_wrong_yaml_beside_others_is_found_by_dg_check_defs(project: Project, option: str) -> None:
    wrong = {"wrong": 0, "wrong_too": -1}
    for name, shards in {"fine": 1, **wrong}.items():
        project.dataset(name, shards=shards)
    done = dg_command(project, "check", "defs", option)
    for name in wrong:
        project.dataset(name, shards=1)
    assert done.returncode != 0
    for name, shards in wrong.items() if option == "--no-check-yaml" else ():
        assert f"{name}/defs.yaml:" in done.stdout and f"found {shards}" in done.stdout
