"""A group, "Materialize all…", All, Launch: everything in one run."""

import re
import subprocess
import sys

from tests.components.project import environment
from tests.waiting import wait_for

from .board import SECONDS, Board


def test_a_group_is_materialized_by_one_run_with_nothing_else_on_the_board(board: Board) -> None:
    board.lineage("first")
    board.shows("raw", "shards", "merged")
    run = board.materialize("Materialize all", "All")
    assert (run["jobName"], run["status"]) == ("Refresh_first", "SUCCESS")
    assert {"key": "tfr/dataset", "value": "first"} in run["tags"]  # what lets one run of a dataset through at a time
    board.page.set_viewport_size({"width": 1440, "height": 480})  # the picture shall be of the graph, not of nothing
    board.lineage("first")
    board.shows("4 partitions", "4 / 4 Passed")
    assert board.page.get_by_text("Never materialized").count() == 0
    board.picture("lineage", (240, 106, 1200, 300))


def test_planned_numbers_of_shards_need_no_reload(board: Board) -> None:
    board.lineage("auto")
    run = board.materialize("Materialize all", "All")
    assert (run["jobName"], run["status"]) == ("Refresh_auto", "SUCCESS")
    board.lineage("auto")
    board.shows("2 partitions")  # one per split


def test_what_is_measured_has_a_group_of_its_own_and_one_run(board: Board) -> None:
    board.lineage("raced")
    assert board.materialize("Materialize all", "All")["status"] == "SUCCESS"
    board.lineage("raced_bench")
    run = board.materialize("Materialize all", "All")
    assert (run["jobName"], run["status"]) == ("Bench_writers_raced", "SUCCESS")


def test_what_the_terminal_did_stands_on_the_first_page_and_among_the_jobs(board: Board) -> None:
    project = board.server.project
    home = project.root / "home"
    command = [sys.executable, "-m", "tfr_assets.cli", "run", "typed"]
    subprocess.run(
        command, cwd=home, env=environment(project) | {"DAGSTER_HOME": str(home)}, check=True, timeout=SECONDS
    )
    (run,) = board.server.runs_of_job("Refresh_typed")
    assert run["status"] == "SUCCESS"
    board.open("")
    board.shows("Timeline", "Refresh_typed")
    board.page.set_viewport_size({"width": 1440, "height": 5000})  # it shows no more jobs than there is room for
    board.open("jobs")
    board.shows(re.compile(r"^Refresh_typed$"))
    wait_for(lambda: bool(re.search(r"Refresh_typed\s+\S.* ago", board.page.locator("body").inner_text())), SECONDS)
    story = board.story(run, "typed on one page: ")
    for says in (
        "typed: 1,000 rows",
        "typed: 1,000 records of 2 features in 2 shards, of which this run takes 2",
        "train-00000-of-00002: wrote 500 records",
        "train-00001-of-00002: wrote 500 records",
        "2 shards, 1,000 records",
        "train: copied",
        str(project.layout("typed").report),
    ):
        assert story.count(says) == 1, story
    assert "WARNING" not in story
