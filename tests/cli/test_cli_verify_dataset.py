"""`tfr verify NAME` knows from the dataset's YAML and its inventory which files there must be."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tfr_assets

Tfr = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tfr(tmp_path: Path) -> Tfr:
    """Calls `tfr` in a project of its own with one dataset, `few`, of two shards."""
    package = Path(tfr_assets.__file__).parent
    # with __pycache__: compiled kernels are there, and compiling them again is not what is tried here
    shutil.copytree(package, tmp_path / "tfr_assets", ignore=shutil.ignore_patterns("defs"))
    shutil.copy(package.parent / "pyproject.toml", tmp_path)
    (tmp_path / "few.csv").write_text("n,word\n" + "".join(f"{n},w{n}\n" for n in range(100)))
    write_yaml(tmp_path, "source: few.csv, shards: 2")
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = {
        **os.environ, "TFR_DATA": str(tmp_path / "data"), "DAGSTER_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path),
    }  # fmt: skip

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "tfr_assets.cli", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)

    return run


def write_yaml(project: Path, attributes: str) -> None:
    path = project / "tfr_assets" / "defs" / "few" / "defs.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"type: tfr_assets.TFRecordDataset\nattributes: {{{attributes}}}\n")


def test_whatever_is_gone_from_a_dataset_is_noticed(tfr: Tfr, tmp_path: Path) -> None:
    data = tmp_path / "data" / "few"
    early = tfr("verify", "few")
    assert early.returncode == 1, early.stderr
    assert f"{data}: nothing was written yet (`tfr run few` writes it)" in early.stdout
    assert "Traceback" not in early.stderr
    assert tfr("verify", "fwe").returncode == 2

    done = tfr("run", "few")
    assert done.returncode == 0, done.stderr
    done = tfr("verify", "few")
    assert done.returncode == 0, done.stdout + done.stderr

    for path in (data / "shards").rglob("*"):
        if path.is_file():
            path.unlink()
    shutil.rmtree(data / "merged")
    gone = tfr("verify", "few")
    assert gone.returncode == 1
    for index in range(2):
        name = data / "shards" / f"few-train.tfrecord-{index:05d}-of-00002"
        assert f"{name}: file is missing (with its manifest; `tfr run few` writes it)" in gone.stdout
    reports = json.loads(tfr("verify", str(data), "--json").stdout)
    assert [(Path(report["path"]).name, report["ok"]) for report in reports] == [
        (f"few-train.tfrecord-{index:05d}-of-00002", False) for index in range(2)
    ]

    assert tfr("run", "few").returncode == 0
    write_yaml(tmp_path, "source: few.csv, shards: 2, compression: gzip")
    stale = tfr("verify", "few")
    assert stale.returncode == 1
    assert stale.stdout.count("file is not of the current plan (made from another compression") == 3
    write_yaml(tmp_path, "source: few.csv, shards: none")
    broken = tfr("verify", "few")
    assert broken.returncode == 1
    assert "its plan is not known" in broken.stdout and "shards: expected a whole number" in broken.stdout
    assert "200 intact records" not in broken.stdout and broken.stdout.count("100 intact records") == 2
