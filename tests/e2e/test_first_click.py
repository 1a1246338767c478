"""A group, "Materialize all…", All, Launch: everything in one run."""

from .board import Board


def test_a_group_is_materialized_by_one_run_with_nothing_else_on_the_board(board: Board) -> None:
    board.lineage("first")
    board.shows("raw", "shards", "merged")
    run = board.materialize("Materialize all", "All")
    assert (run["jobName"], run["status"]) == ("Refresh_first", "SUCCESS")
    assert {"key": "tfr/dataset", "value": "first"} in run["tags"]  # what lets one run of a dataset through at a time
    board.lineage("first")
    board.shows("4 partitions", "4 / 4 Passed")
    assert board.page.get_by_text("Never materialized").count() == 0
    board.picture("lineage")


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
