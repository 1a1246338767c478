"""`tfr run|plan|list|verify|inspect|export --slices`, as a person at a terminal calls them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.components.conftest import numbers
from tests.components.project import Project, environment
from tests.memory import make_in_memory

DAYS = ["2026-03-01", "2026-03-02"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    made = Project(tmp_path_factory.mktemp("project"))
    for number, key in enumerate(DAYS):
        (made.root / "raw" / key).mkdir()
        made.table(f"{key}/part", numbers(50, 100 * number))
    made.dataset("events", source="raw/{slice}/*.parquet", slices={"daily": DAYS[0]}, shards=2)
    made.table("plain", numbers(10))
    made.dataset("plain", shards=1)
    yield made
    made.instance.dispose()


def tfr(project: Project, *arguments: str) -> "subprocess.CompletedProcess[str]":
    if not (home := project.root / "home").exists():
        make_in_memory(home, project)
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    command = [sys.executable, "-m", "tfr_assets.cli", "--project", str(project.root), *arguments]
    return subprocess.run(
        command, env=environment(project) | {"DAGSTER_HOME": str(home)}, capture_output=True, text=True, check=False
    )


def test_slices_are_made_listed_verified_and_exported(project: Project) -> None:
    done = tfr(project, "run", "events", "--slices", "2026-03-01..2026-03-03", "--json")
    assert done.returncode == 1, done.stderr  # the third one has no data, which the others do not mind
    outcomes = json.loads(done.stdout)
    assert [(each["slice"], each["ok"]) for each in outcomes] == [
        (DAYS[0], True),
        (DAYS[1], True),
        ("2026-03-03", False),
    ]
    assert "no file matches this pattern" in outcomes[2]["failures"][0]

    nothing = tfr(project, "run", "events", "--slices", "new", "--json")
    assert nothing.returncode == 0 and json.loads(nothing.stdout) == []
    project.table(f"{DAYS[1]}/part", numbers(50, 500))
    listed = {row["name"]: row for row in json.loads(tfr(project, "list", "--json").stdout)}
    assert listed["events"]["stale"] == {DAYS[1]: "its raw files have changed"} and listed["plain"]["stale"] is None
    assert f"1: {DAYS[1]}" in tfr(project, "list").stdout
    assert "its raw files have changed" in tfr(project, "list", "--slices").stdout
    new = json.loads(tfr(project, "run", "events", "--slices", "new", "--json").stdout)
    assert [outcome["slice"] for outcome in new] == [DAYS[1]]

    again = tfr(project, "run", "events", "--slices", ",".join(DAYS))
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("(1 there already)") == 2 and "events/2026-03-02" in again.stdout

    events = next(each for each in json.loads(tfr(project, "list", "--json").stdout) if each["name"] == "events")
    assert (events["rows"], events["shards"], events["shards_written"], events["slices_made"]) == (100, 4, 4, 2)
    lines = json.loads(tfr(project, "list", "--slices", "--json").stdout)
    assert [line["name"] for line in lines] == ["events/2026-03-01", "events/2026-03-02", "plain"]

    assert "all 6 files are whole: merged: 100 intact records" in tfr(project, "verify", "events").stdout
    one = tfr(project, "verify", "events", "--slices", DAYS[1])
    assert one.returncode == 0 and "all 3 files are whole: merged: 50 intact records" in one.stdout
    every = tfr(project, "verify", "events", "--slices", "all")
    assert every.returncode == 0 and "all 6 files are whole" in every.stdout
    assert "left out, because not made yet: 2026-03-03, 2026-03-04" in every.stderr
    none = tfr(project, "verify", "events", "--slices", "2026-03-09")
    assert none.returncode == 1 and "1 of 1 slices are not there: 2026-03-09" in none.stderr
    shown = json.loads(tfr(project, "inspect", "events", "--slices", DAYS[0], "--json").stdout)
    assert len(shown) == 3

    layout = project.layout("events").of_slice(DAYS[1])
    layout.shard_path("train-00001-of-00002").unlink()
    gone = tfr(project, "verify", "events")
    assert gone.returncode == 1 and "missing" in gone.stdout
    assert tfr(project, "verify", "events", "--slices", DAYS[0]).returncode == 0
    project.dataset("events", source="raw/{slice}/*.parquet", slices={"daily": DAYS[0]}, shards=3)
    other = tfr(project, "verify", "events", "--slices", DAYS[0])  # the plan of that slice
    assert other.returncode == 1 and f"`tfr run events --slices {DAYS[0]}` writes it" in other.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (
            ["run", "events"],
            2,
            "comes in slices (daily); say which, such as --slices last, --slices 2026-03-01..2026-03-02",
        ),
        (["plan", "events", "--slices", "tomorrow"], 2, "there is no slice 'tomorrow'; there are 2026-03-01 to"),
        (["run", "plain", "--slices", "last"], 2, "the raw data of plain does not come in slices; leave it out"),
    ],
)
def test_what_is_no_slice_is_named(project: Project, arguments: list[str], code: int, says: str) -> None:
    done = tfr(project, *arguments)
    assert done.returncode == code
    assert says in " ".join(done.stderr.split()) and "Traceback" not in done.stderr


def test_verify_tells_of_slices_beside_files_of_the_whole_dataset(project: Project) -> None:
    (project.root / "raw" / "was" / "one").mkdir(parents=True)
    project.table("was/one/part", numbers(10))
    project.dataset("was", source="raw/was/{slice}/*.parquet", slices={"values": ["one"]}, shards=1)
    assert tfr(project, "run", "was", "--slices", "all").returncode == 0
    project.dataset("was", source="raw/was/one/*.parquet", shards=1)
    assert tfr(project, "run", "was").returncode == 0
    done = tfr(project, "verify", "was")
    assert done.returncode == 1 and "holds both slices and files of the whole dataset" in done.stdout
    shutil.rmtree(project.layout("was").slices)
    assert tfr(project, "verify", "was").returncode == 0
