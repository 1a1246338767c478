"""A mistake in one dataset's YAML: shown in its place, while the others go on."""

from functools import partial

from tests.waiting import wait_for

from .board import SECONDS, Board


def test_a_mistake_stays_where_it_is_until_it_is_mended(board: Board) -> None:
    file = board.server.project.yaml("careless")
    right = file.read_text()
    file.write_text(right.replace("source:", "sorce:"))
    board.lineage("careless")
    board.press("Reload definitions")
    about = '{ assetNodes(assetKeys: [{path: ["careless", "raw"]}]) { description } }'
    wait_for(lambda: "cannot be loaded" in str(board.server.query(about)), SECONDS)
    board.asset("careless", "raw")
    board.shows("This dataset cannot be loaded.", "line 3: sorce: ", "did you mean 'source'?", str(file))
    board.press("Materialize")
    runs = partial(board.server.runs_of_job, "Refresh_careless")
    wait_for(lambda: [run["status"] for run in runs()] == ["FAILURE"], SECONDS)
    board.open(f"runs/{runs()[0]['runId']}")
    board.shows("careless cannot be loaded: ")

    board.lineage("beside")
    assert board.materialize("Materialize all", "All")["status"] == "SUCCESS"

    file.write_text(right)
    board.lineage("careless")
    board.press("Reload definitions")
    board.shows("shards", "merged")
    assert board.materialize("Materialize all", "All")["status"] == "SUCCESS"
