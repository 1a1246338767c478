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

    assert board.materialize_alone("merged")["status"] == "FAILURE"
    board.shows("Stack Trace:")
    says = board.page.locator("body").inner_text().partition("Stack Trace:")[0]  # above what Dagster adds
    assert "cannot merge dataset 'rotten'; materialize these shards again" in says
    assert "train-00003-of-00004: missing" in says
    assert f"train-00001-of-00004: {files[DAMAGED]}: record 0 at byte" in says
    assert "on the page of rotten/shards, Materialize → Failed → Launch; then materialize merged" in says
    board.asset("rotten", "shards", "partitions")
    board.shows("Failed (2)", "Materialized (2)")

    merged = bytearray(layout.merged_path("train").read_bytes())
    merged[20] ^= 1
    layout.merged_path("train").write_bytes(merged)
    assert board.launch_job("Verify_rotten")["status"] == "FAILURE"
    board.shows("2 of 4 partitions of rotten/shards are damaged, missing", "rotten/merged is damaged")
    board.lineage("rotten")
    board.shows("failed", "Failed", "1 / 5 Passed", "1 / 4 Passed")
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
    assert board.materialize_alone("merged")["status"] == "SUCCESS"
    assert board.launch_job("Verify_rotten")["status"] == "SUCCESS"
    board.lineage("rotten")
    board.shows("5 / 5 Passed", "4 / 4 Passed")
    assert board.page.get_by_text("Failed").count() == 0


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
