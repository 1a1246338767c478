"""The rooms of the project: data flows down, and each room imports only rooms below it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tfr_assets

PACKAGE = Path(tfr_assets.__file__).parent
ROOMS = [  # from the top down
    "cli", "compile_kernels", "definitions", "defs", "components", "bench", "reading", "writing", "samples", "pictures",
    "sources", "records", "storage",
]  # fmt: skip
SHARED = {"layout", "errors", "option_groups", "packages", "processes", "project", "units", "urls"}
# Folders and modules of a room, from the bottom up: each imports only those before it. Its other modules come last.
FOLDERS = {
    "storage": ["objects"],
    "records": ["schema", "arrow", "kernels", "frames", "examples"],
    "sources": [
        "model", "files", "tables", "landing", "inventory", "media", "media.images", "media.audio", "media.text",
        "mixed",
    ],
    "writing": [
        "export", "writers", "remote", "stray", "appended", "dataset", "plan", "sizing", "outdated", "shard", "slices",
        "audit", "stored", "foreign",
    ],
    "reading": ["locate", "adapters", "tensors", "native", "access", "readers", "readers.processes"],
    "bench": ["process", "writers", "readers"],
    "components": [
        "runs.steps", "runs.celery", "runs", "attributes", "failures", "metadata", "assets", "automation", "config",
    ],
}  # fmt: skip
MOST_FILES = 15


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
        ("storage", {"dagster", "tensorflow", "numba", "pandas"}),
        ("records", {"dagster", "tensorflow", "pandas"}),
        ("sources", {"dagster", "tensorflow", "numba"}),
        ("pictures", {"dagster", "tensorflow", "numba", "pyarrow", "pandas"}),
        ("writing", {"dagster", "tensorflow"}),
        ("reading", {"dagster"}),
        ("bench", {"dagster"}),
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


def _modules(room: str) -> dict[str, Path]:
    found = {}
    for path in (PACKAGE / room).rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imported_modules(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tfr_assets."):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return {name.removeprefix("tfr_assets.") for name in names}


@pytest.mark.parametrize("room", FOLDERS)
def test_a_folder_imports_only_folders_before_it(room: str) -> None:
    modules, order = _modules(room), [f"{room}.{folder}" for folder in FOLDERS[room]]

    def place(module: str) -> int:
        folders = [folder for folder in order if module == folder or module.startswith(f"{folder}.")]
        return order.index(max(folders, key=len)) if folders else len(order)

    for module, path in modules.items():
        imported = {name for name in _imported_modules(path) if name in modules and name != module}
        wrong = {name for name in imported if place(name) > place(module)}
        # where a room's `__init__` hands on what its folders have, it is one of the room's own modules
        assert not wrong, f"{module} imports {sorted(wrong)}"


@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE.rglob("*.py")}), ids=lambda path: path.name)
def test_a_folder_can_be_taken_in_at_a_glance(folder: Path) -> None:
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST_FILES
    if "defs" not in folder.parts:
        assert (ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "").strip()


def test_kernels_call_nothing_that_their_stamp_does_not_cover() -> None:
    helpers = {}  # compiled functions outside of the folder that every stamp covers
    for path in PACKAGE.rglob("*.py"):
        if path.parent == PACKAGE / "records" / "kernels":
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                decorators = {
                    getattr(each, "id", getattr(getattr(each, "func", None), "id", "")) for each in node.decorator_list
                }
                if decorators & {"inlined", "called"}:
                    helpers[node.name] = path
    assert helpers
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tfr_assets."):
                stolen = {alias.name for alias in node.names if alias.name in helpers and helpers[alias.name] != path}
                source = PACKAGE.joinpath(*str(node.module).split(".")[1:]).with_suffix(".py")
                assert not {name for name in stolen if helpers[name] == source}, path
