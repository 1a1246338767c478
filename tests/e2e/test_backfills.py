"""Backfills: cancelled half-way and resumed, two at once, with a shard that fails."""

from tests.waiting import wait_for
from tfr_assets.layout import shard_keys

from .board import SECONDS, Board


def test_a_cancelled_backfill_leaves_the_truth_and_is_resumed(board: Board) -> None:
    server, layout = board.server, board.server.project.layout("halted")
    faults = [server.project.fault(f"train-{index:05d}-of-00006", "wait") for index in (3, 5)]
    board.lineage("halted")
    board.launch("Materialize all", "All")
    wait_for(lambda: server.partitions("halted")["materialized"] == 4, SECONDS)  # two workers are held up
    board.cancel_backfill()
    (cancelled,) = server.wait_for_runs("halted", 0)
    assert cancelled["status"] == "CANCELED"
    for fault in faults:
        fault.unlink()
    board.asset("halted", "shards", "partitions")
    board.shows("Failed (0)", "Materialized (4)", "Materializing (0)", "Missing (2)")
    assert sorted(path.name[-14:] for path in layout.shards.glob("*.tfrecord-*")) == [
        f"{index:05d}-of-00006" for index in (0, 1, 2, 4)
    ]

    written = {path: path.stat().st_mtime_ns for path in layout.shards.glob("*.tfrecord-*")}
    board.lineage("halted")
    assert board.materialize("Materialize all", "All")["status"] == "SUCCESS"
    board.asset("halted", "shards", "partitions")
    board.shows("Materialized (6)", "Missing (0)")
    assert written.items() <= {path: path.stat().st_mtime_ns for path in layout.shards.glob("*.tfrecord-*")}.items()


def test_two_backfills_of_the_same_partitions_wait_for_each_other(board: Board) -> None:
    server = board.server
    fault = server.project.fault("train-00002-of-00005", "wait")
    for _ in range(2):
        board.lineage("twice")
        board.launch("Materialize all", "All")
    wait_for(lambda: server.statuses("twice") == ["QUEUED", "STARTED"], SECONDS, lambda: str(server.runs("twice")))
    fault.unlink()
    assert [run["status"] for run in server.wait_for_runs("twice", 0, count=2)] == ["SUCCESS", "SUCCESS"]
    assert server.partitions("twice") == {"materialized": 5, "failed": 0, "materializing": 0, "partitions": 5}


def test_a_shard_that_failed_is_launched_again_by_one_choice(board: Board) -> None:
    board.server.project.fault("train-00001-of-00003", "kill")
    assert board.server.refresh("mended", shard_keys("train", 3)) == "FAILURE"
    board.asset("mended", "shards", "partitions")
    board.shows("Failed (1)", "Materialized (2)", "Missing (0)")
    board.asset("mended", "shards")
    assert board.materialize("Materialize", "Failed")["status"] == "SUCCESS"
    board.asset("mended", "shards", "partitions")
    board.shows("Failed (0)", "Materialized (3)")


def test_shards_are_chosen_one_by_one_and_what_is_missing_by_one_choice(board: Board) -> None:
    server, keys = board.server, shard_keys("train", 4)
    board.dataset = "picked"
    assert board.materialize_alone("raw")["status"] == "SUCCESS"
    for ticked, runs, there in ((keys[:2], 1, 2), ([keys[0], keys[3]], 2, 3)):  # adjacent ones are one run
        before = len(server.runs("picked"))
        board.asset("picked", "shards")
        board.launch("Materialize", "All", *ticked)
        assert {run["status"] for run in server.wait_for_runs("picked", before, count=runs)} == {"SUCCESS"}
        assert server.partitions("picked")["materialized"] == there
    board.asset("picked", "shards", "partitions")
    board.shows("Materialized (3)", "Missing (1)")
    board.asset("picked", "shards")
    assert board.materialize("Materialize", "Missing")["status"] == "SUCCESS"
    board.asset("picked", "shards", "partitions")
    board.shows("Materialized (4)", "Missing (0)")
