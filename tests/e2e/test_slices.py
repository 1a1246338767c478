"""Raw data in slices: one is chosen and made, and a folder that grows is made by the daemon alone."""

from tests.waiting import wait_for

from .board import SECONDS, Board
from .conftest import numbers


def test_a_slice_is_chosen_made_and_seen(board: Board) -> None:
    board.lineage("regions")
    board.shows("raw", "shards", "merged")
    board.launch("Materialize all", "All", "us")
    (run,) = board.server.wait_for_runs("regions/us", 0)
    assert run["status"] == "SUCCESS" and run["jobName"] == "Refresh_regions"
    for part in ("raw", "shards", "merged"):
        board.asset("regions", part, "partitions")
        board.shows("Materialized (1)", "Missing (1)")
    board.open("assets/regions/merged?view=partitions&partition=us")
    board.shows("us", "dagster/row_count")
    assert board.server.project.layout("regions").of_slice("us").merged_path().is_file()
    assert not board.server.project.layout("regions").of_slice("eu").folder.exists()


def test_a_new_folder_becomes_a_partition_and_is_made_without_a_click(board: Board) -> None:
    server = board.server
    wait_for(
        lambda: server.partitions("arriving")["materialized"] == 1, SECONDS, lambda: str(server.runs("arriving/a"))
    )
    folder = server.project.root / "raw" / "arriving" / "b"
    folder.mkdir()
    server.project.table("arriving/b/part", numbers())
    board.asset("arriving", "shards", "partitions")
    board.shows("Materialized (2)", "Missing (0)")
    assert [run["status"] for run in server.wait_for_runs("arriving/b", 0)] == ["SUCCESS"]  # one, in all looks since
