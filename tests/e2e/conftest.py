"""A browser, and a project with `dagster dev` behind it."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.components.project import Project

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[e2e]'")

from tests.e2e.board import Board, Server  # noqa: E402  (it needs playwright)

ROWS, SHARDS = 1000, 4
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if not BROWSER:
        pytest.skip("there is no Chromium; on Debian and Ubuntu: apt install chromium")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=BROWSER, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose datasets are all there before the server starts; each test has its own."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("e2e")
        patch.syspath_prepend(root)
        patch.setenv("TFR_DATA", str(root / "data"))
        patch.setenv("TFR_WORKERS", str(os.cpu_count() or 1))
        made = Project(root, "demo")
        made.table("numbers", numbers())
        made.table("spiked", spiked())
        for name in ("watched", "followed"):
            made.table(name, numbers())
        for name in ("regions/eu", "regions/us", "arriving/a/part"):
            (root / "raw" / name).parent.mkdir(parents=True, exist_ok=True)
            made.table(name, numbers())
        for name, attributes in DATASETS.items():
            made.dataset(name, **({"source": "raw/numbers.parquet"} | attributes))
        yield made
        made.instance.dispose()


DATASETS: dict[str, dict[str, Any]] = {
    "first": {"shards": SHARDS},
    "auto": {"shards": "auto", "splits": {"train": 0.9, "test": 0.1}},
    "rotten": {"shards": SHARDS},
    "spiked": {"shards": SHARDS, "source": "raw/spiked.parquet"},
    "morning": {"shards": SHARDS, "schedule": "0 6 * * *"},
    "aged": {"shards": SHARDS},
    "typed": {"shards": 2},
    "picked": {"shards": SHARDS},
    "careless": {"shards": 2},
    "beside": {"shards": 1},
    "followed": {"shards": 1, "source": "raw/followed.parquet", "automation": "on_change"},
    # each has shards of a number of its own: their keys name the faults
    "halted": {"shards": 6},
    "twice": {"shards": 5},
    "mended": {"shards": 3},
    # these are launched by the daemon, while other tests run
    "minutely": {"shards": 1, "schedule": "* * * * *"},
    "watched": {"shards": 1, "source": "raw/watched.parquet", "watch": 10},
    "late": {"shards": 1, "freshness": 1 / 60, "watch": 10},
    "regions": {"shards": 2, "source": "raw/regions/{slice}.parquet", "slices": {"values": ["eu", "us"]}},
    "arriving": {
        "shards": 1,
        "source": "raw/arriving/{slice}/*.parquet",
        "slices": {"folder": "raw/arriving"},
        "watch": 10,
    },
    "raced": {"shards": SHARDS, "bench": {"writers": {"only": ["serial", "locked"], "workers": [1], "repeats": 1}}},
}


def numbers() -> pa.Table:
    """A small table."""
    return pa.table({"id": pa.array(range(ROWS), pa.uint64()), "word": [f"word {n}" for n in range(ROWS)]})


def spiked() -> pa.Table:
    """The same, with a number in the third shard that no feature can hold."""
    ids = [2**63 if n == 600 else n for n in range(ROWS)]
    return numbers().set_column(0, "id", pa.array(ids, pa.uint64()))


@pytest.fixture(scope="session")
def server(project: Project, browser: Any) -> Iterator[Server]:
    running = Server.start(project)
    yield running
    running.stop()


@pytest.fixture
def board(browser: Any, server: Server, request: pytest.FixtureRequest) -> Iterator[Board]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield Board(page, server)
    context.close()
