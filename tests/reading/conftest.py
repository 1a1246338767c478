from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tfr_assets.layout import Layout
from tfr_assets.reading.locate import foreign_cache

from .datasets import write_dataset


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Layout]:
    """Writes a table below a folder of the test's own."""
    return lambda table, **options: write_dataset(table, tmp_path, **options)


@pytest.fixture
def numbers(tmp_path: Path) -> Layout:
    """Ten rows in three shards."""
    return write_dataset(pa.table({"x": pa.array(range(10), pa.int64())}), tmp_path)


@pytest.fixture
def surveys(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Notes each survey."""
    found: list[object] = []
    survey = foreign_cache.survey
    monkeypatch.setattr(foreign_cache, "survey", lambda paths, *args: (found.append(paths), survey(paths, *args))[1])
    return found
