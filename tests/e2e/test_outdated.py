"""What is outdated is marked without a run, and what there is stands on one page."""

from playwright.sync_api import expect

from tfr_assets.layout import shard_keys

from .board import SECONDS, Board


def test_a_change_of_the_yaml_marks_shards(board: Board) -> None:
    assert board.server.refresh("aged", shard_keys("train", 4)) == "SUCCESS"
    board.lineage("aged")
    board.shows("5 / 5 Passed", "4 / 4 Passed")
    board.server.project.dataset("aged", source="raw/numbers.parquet", shards=4, features={"drop": ["word"]})
    board.server.reload()
    board.asset("aged", "shards", "checks&checkDetail=current")
    board.shows("Of 4 shards, 4 made from another features")
    board.lineage("aged")
    board.shows("4 / 5 Passed")


def test_the_report_is_legible_without_dagster(board: Board) -> None:
    layout = board.server.project.layout("aged")
    requests: list[str] = []
    board.page.on("request", lambda request: requests.append(request.url))
    for scheme in ("light", "dark"):
        board.page.emulate_media(color_scheme=scheme)
        board.page.goto(f"file://{layout.report}")
        expect(board.page.get_by_role("heading", name="aged")).to_be_visible(timeout=SECONDS * 1000)
        board.shows("Checks", "Raw data", "Shards", "Merged", "1,000 records", "4 of 4", "train-00003-of-00004")
        if scheme == "light":
            board.picture("report", (144, 0, 1160, 590))
        back, ink = board.page.evaluate(
            "(() => { const style = getComputedStyle(document.body); return [getComputedStyle(document.documentElement)"
            ".colorScheme, style.color] })()"
        )
        assert back == "light dark"
        assert (ink == "rgb(0, 0, 0)") == (scheme == "light")
    assert requests == [f"file://{layout.report}"] * 2  # nothing else is fetched
    assert board.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
