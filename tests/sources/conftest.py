import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest


@pytest.fixture
def landing(tmp_path: Path) -> Iterator[Path]:
    """A folder for landed rows; whatever a test does, nothing temporary may be left in it."""
    folder = tmp_path / "raw" / "landing"
    yield folder
    if folder.is_dir():
        assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Writes an importable module and returns its name."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    names = []

    def write(code: str) -> str:
        names.append(f"user_{uuid4().hex}")
        (folder / f"{names[-1]}.py").write_text(textwrap.dedent(code))
        return names[-1]

    yield write
    for name in names:
        sys.modules.pop(name, None)
