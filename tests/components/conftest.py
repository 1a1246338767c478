from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from .project import Project, Ran

ROWS, SHARDS = 1000, 4


def numbers(rows: int = ROWS, start: int = 0) -> pa.Table:
    """A small table with a null in every tenth row."""
    values = range(start, start + rows)
    return pa.table(
        {
            "id": pa.array(values, pa.uint64()),
            "half": pa.array([None if i % 10 == 0 else i / 2 for i in values], pa.float32()),
            "word": pa.array([f"word {i}" for i in values], pa.string()),
        }
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project for the tests of a module, each with datasets of its own."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("project")
        patch.syspath_prepend(root)
        patch.setenv("TFR_DATA", str(root / "data"))
        patch.setenv("TFR_WORKERS", "2")
        made = Project(root)
        yield made
        made.instance.dispose()


@pytest.fixture(scope="module")
def make_dataset(project: Project) -> Callable[..., str]:
    """Makes a dataset of `numbers` under a name of its own."""

    def make(name: str, rows: int = ROWS, **attributes: object) -> str:
        project.table(name, numbers(rows))
        project.dataset(name, **({"shards": SHARDS} | attributes))
        return name

    return make


@pytest.fixture(scope="module")
def refreshed(project: Project, make_dataset: Callable[..., str]) -> tuple[str, Ran]:
    """A dataset that was refreshed once; look, do not touch."""
    name = make_dataset("calm", description="Numbers.", owners=["team:data"], tags={"domain": "maths"})
    return name, project.refresh(name, SHARDS)
