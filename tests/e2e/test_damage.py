"""Damage is red exactly where it is, and leads to its repair."""

from .board import Board

DAMAGED, GONE = 1, 3


def test_damage_is_red_where_it_is_and_one_click_repairs_it(board: Board) -> None:
    board.lineage("rotten")
    assert board.materialize("Materialize all", "All")["status"] == "SUCCESS"
    layout = board.server.project.layout("rotten")
    files = [layout.shard_path(f"train-{index:05d}-of-00004") for index in range(4)]
    content = bytearray(files[DAMAGED].read_bytes())
    content[20] ^= 1
    files[DAMAGED].write_bytes(content)
    files[GONE].unlink()

    assert board.launch_job("Verify_rotten")["status"] == "FAILURE"
    board.shows("2 of 4 partitions of rotten/shards are damaged, missing")
    board.lineage("rotten")
    board.shows("failed")
    board.asset("rotten", "shards", "partitions")
    board.shows("Failed (2)", "Materialized (2)", "Missing (0)")
    board.picture("damage", (240, 0, 1200, 380))
    board.asset("rotten", "shards", "checks")
    board.shows("file is missing")  # the latest result is a failed one

    board.asset("rotten", "shards")
    before = len(board.server.runs("rotten"))
    board.press("Materialize")
    board.press("Failed", exact=True)
    board.shows("2 partitions")
    board.picture("repair", (370, 128, 700, 516))
    board.press("Launch")
    runs = board.server.wait_for_runs("rotten", before, count=2)  # they are not adjacent
    assert {run["status"] for run in runs} == {"SUCCESS"}
    board.asset("rotten", "shards", "partitions")
    board.shows("Failed (0)", "Materialized (4)")
    assert board.launch_job("Verify_rotten")["status"] == "SUCCESS"


def test_one_failing_shard_leaves_the_others_green(board: Board) -> None:
    board.lineage("spiked")
    assert board.materialize("Materialize all", "All")["status"] == "FAILURE"
    board.asset("spiked", "shards", "partitions")
    board.shows("Failed (1)", "Materialized (3)", "Missing (0)")
    found = board.server.query(
        '{ assetCheckExecutions(assetKey: {path: ["spiked", "shards"]}, checkName: "crc", limit: 10) '
        "{ status evaluation { partition } } }"
    )["assetCheckExecutions"]
    assert sorted(each["status"] for each in found) == ["EXECUTION_FAILED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]
