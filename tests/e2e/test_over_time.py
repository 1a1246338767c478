"""What the daemon does by itself while other tests run: schedules, watches, freshness."""

from tests.waiting import wait_for
from tfr_assets.layout import shard_keys
from tfr_assets.records.frames.manifest import Manifest

from .board import SECONDS, Board
from .conftest import ROWS, numbers

KEY = shard_keys("train", 1)


def test_ticks_that_find_nothing_new_launch_nothing_and_say_so(board: Board) -> None:
    says = "nothing new: raw files and settings are those that all files were made from"
    wait_for(lambda: says in board.server.ticks("schedule", "minutely_schedule"), SECONDS)
    ticks = board.server.ticks("schedule", "minutely_schedule")
    assert ticks.count("") == len(board.server.runs("minutely")) == 1
    assert all(why in ("", says) or why.endswith("is not over yet") for why in ticks), ticks  # on a busy machine
    board.open(f"locations/{board.server.project.package}/schedules/minutely_schedule")
    board.shows("0 runs requested", "1 run requested")


def test_a_watch_launches_a_run_for_new_raw_data_and_none_otherwise(board: Board) -> None:
    says = "no raw file was added, removed or written to"
    wait_for(lambda: says in board.server.ticks("sensor", "watched_raw_changed"), SECONDS)
    assert board.server.statuses("watched") == ["SUCCESS"]
    board.server.project.table("watched", numbers().slice(0, ROWS - 1))
    board.server.wait_for_runs("watched", 1)
    assert board.server.statuses("watched") == ["SUCCESS", "SUCCESS"]
    board.asset("watched", "merged")
    board.shows("999")


def test_a_merged_file_is_late_after_its_time(board: Board) -> None:
    wait_for(lambda: board.server.statuses("late") == ["SUCCESS"], SECONDS)
    freshness = '{ assetNodes(assetKeys: [{path: ["late", "merged"]}]) { freshnessStatusInfo { freshnessStatus } } }'

    def late() -> bool:
        (node,) = board.server.query(freshness)["assetNodes"]
        return bool(node["freshnessStatusInfo"]["freshnessStatus"] == "DEGRADED")

    wait_for(late, SECONDS)
    board.asset("late", "merged")
    board.shows("Freshness policy", "Fails if more than a minute since last materialization")


def test_shards_and_merged_follow_raw_by_themselves(board: Board) -> None:
    server = board.server
    assert server.refresh("followed", KEY) == "SUCCESS"
    server.project.table("followed", numbers().slice(0, ROWS - 2))
    board.dataset = "followed"
    assert board.materialize_alone("raw")["status"] == "SUCCESS"

    def followed() -> bool:
        manifest = Manifest.load(server.project.layout("followed").merged_path("train"))
        return manifest is not None and manifest.records == ROWS - 2

    wait_for(followed, SECONDS, lambda: str(server.runs("followed")))
    server.wait_for_runs("followed", 2)
    assert set(server.statuses("followed")) == {"SUCCESS"}
    board.asset("followed", "merged")
    board.shows("998")
    board.open("automation")
    board.shows("followed_follows_raw", "followed_current")
