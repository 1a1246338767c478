"""The rooms of the project: data flows down, and each room imports only rooms below it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tfr_assets

PACKAGE = Path(tfr_assets.__file__).parent
ROOMS = [  # from the top down
    "cli", "definitions", "defs", "components", "reading", "writing", "samples", "pictures", "sources", "records",
]  # fmt: skip
SHARED = {"layout", "errors", "project"}


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "tfr_assets"
                else [node.module]
            )
        rooms |= {name.split(".")[1] for name in names if name.startswith("tfr_assets.")}
    return rooms


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_rooms_below_it(path: Path) -> None:
    room = _room(path)
    if room == "__init__":
        return
    imported = _imported_rooms(path) - SHARED - {room}
    if room in SHARED:
        assert imported == set()  # nothing but each other
    else:
        assert imported <= set(ROOMS[ROOMS.index(room) + 1 :])


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("records", {"dagster", "tensorflow", "pandas"}),
        ("sources", {"dagster", "tensorflow", "numba"}),
        ("pictures", {"dagster", "tensorflow", "numba", "pyarrow", "pandas"}),
        ("writing", {"dagster", "tensorflow"}),
        ("reading", {"dagster"}),
        ("components", {"tensorflow", "numba"}),
    ],
)
def test_a_room_does_not_know_what_is_not_its_business(room: str, forbidden: set[str]) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        imports = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
        assert {name.split(".")[0] for name in names} & forbidden == set(), path


def _modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_next_to_nothing() -> None:
    modules = _modules_after("import tfr_assets")
    assert modules.isdisjoint({"dagster", "tensorflow", "numba", "pyarrow", "pandas"})


def test_the_command_line_starts_without_heavy_packages() -> None:
    modules = _modules_after("import tfr_assets.cli")
    assert modules.isdisjoint({"dagster", "tensorflow", "numba", "pyarrow", "pandas"})


def test_the_package_says_what_it_has_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'write_everything'"):
        _ = tfr_assets.write_everything
