"""The order of test files, so that none that takes long begins last; and which settings of the shell tests ignore."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
# Of whoever runs the tests: their Dagster and their data are none of the tests'. `make` itself sets DAGSTER_HOME.
for _variable in ("DAGSTER_HOME", "TFR_DATA", "TFR_EXECUTOR", "TFR_PROJECT"):
    os.environ.pop(_variable, None)
# Files and folders, the slowest first. With `--dist loadfile`, `--no-loadscope-reorder` keeps this order: xdist's own
# is by the number of tests, and the slowest files have few.
_FIRST = ("test_commands.py", "test_installed.py", "components", "torture", "cli", "storage", "reading")


def _rank(item: pytest.Item) -> int:
    try:
        name = item.path.relative_to(_HERE).parts[0]
    except ValueError:
        return len(_FIRST)
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the tests; those of a file stay together, in their order."""
    items.sort(key=_rank)


@pytest.fixture(autouse=True)
def _own_data_folder() -> Iterator[None]:
    """Takes back what definitions of a test's project that are loaded here set: where data lies."""
    before = os.environ.get("TFR_DATA")
    yield
    if before is None:
        os.environ.pop("TFR_DATA", None)
    else:
        os.environ["TFR_DATA"] = before


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, empty and the test's own, in which is kept what is found in files of other origin by URL."""
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TFR_SPOOL", str(place))
    return place / "foreign"
