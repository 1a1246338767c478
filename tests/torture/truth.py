"""What must hold of a folder of files, whatever was done to it."""

import json
import shutil
from pathlib import Path
from typing import Any

from tfr_assets.cli.verify import verify_files
from tfr_assets.errors import TfrError
from tfr_assets.layout import manifest_path
from tfr_assets.records.frames.examine import examine
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.writing.stored import audit_folders, find_record_files

from .scenarios import SCENARIOS, Rows, Scenario, act, read_rows, table

Tree = dict[str, bytes]


def tree_of(root: Path) -> Tree:
    """All files below a folder; of an empty folder, its path with a `/` behind."""
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return files | {
        f"{path.relative_to(root)}/": b"" for path in root.rglob("*") if path.is_dir() and not any(path.iterdir())
    }


def put_tree(root: Path, tree: Tree) -> None:
    """Makes a folder hold these files and no others."""
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, content in tree.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def before_and_after(name: str, root: Path) -> tuple[Tree, Tree]:
    """Prepares a scenario, and tries what it does; returns what was there before, and what is there then."""
    data = root / "data"
    SCENARIOS[name].prepare(root)
    before = tree_of(data)
    put_tree(data, before)
    act(name, root)
    return before, tree_of(data)


def meaning(tree: Tree) -> dict[str, Any]:
    """A tree without what differs from one writing to the next: the mark of a call of `write`, times and inodes."""
    return {name: _meaning(name, content) for name, content in tree.items()}


def _meaning(name: str, content: bytes) -> Any:
    try:
        return _without_marks(json.loads(content)) if name.endswith(".json") else content
    except ValueError:
        return content


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(inner) for key, inner in value.items() if key not in _MARKS}
    return [_without_marks(inner) for inner in value] if isinstance(value, list) else value


_MARKS = ("write", "signature", "checksum")


def check_whole(tree: Tree, before: Tree, after: Tree) -> None:
    """Every file under a final name is one that was there before, or one that is there in the end."""
    for name, content in tree.items():
        temporary = any(part.startswith(".") for part in Path(name).parts)
        known = [_meaning(name, other[name]) for other in (before, after) if name in other]
        assert temporary or name.endswith("/") or _meaning(name, content) in known, f"{name} is neither old nor new"


def check_vouching(root: Path) -> None:
    """No manifest stays beside bytes that it does not describe."""
    for name in sorted(root.rglob("manifest/*.json")):
        path = name.parent.parent / name.stem
        if manifest_path(path) == name and (manifest := Manifest.load(path)):
            assert not path.exists() or examine(path, manifest).ok, f"{name} describes other bytes than lie there"


def check_reading(scenario: Scenario, root: Path) -> str:
    """Readers give one version, whole, or an error; verify is content only with what can be read. Returns which."""
    rows = _rows_or_error(scenario, root / scenario.where)
    if isinstance(rows, TfrError):
        said = str(rows)
        anybodys = (root / scenario.where).is_file()  # a file without a manifest: its own checksums are all there is
        assert anybodys or not is_verified(root / scenario.where), f"verify is content, but a reader says: {said}"
        return "error"
    version = next((version for version in (0, 1) if rows == table(version).to_pylist()), None)
    assert version is not None, f"{len(rows)} rows, of no version: {rows[:2]} … {rows[-2:]}"
    assert version == 1 or scenario.before is not None
    return "new" if version else "old"


def _rows_or_error(scenario: Scenario, where: Path) -> "Rows | TfrError":
    try:
        return read_rows(where, scenario.files)
    except TfrError as error:
        return error


def is_verified(where: Path) -> bool:
    """Whether `tfr verify` is content with a file or folder."""
    files = find_record_files([where]) if where.exists() else []
    beside, _ = audit_folders([where])
    return bool(files) and not beside and all(report.ok for report in verify_files(files, quiet=True))


def check_recovery(name: str, root: Path, data: Path, before: Tree, done: Tree) -> None:
    """Checks what trouble has left of a scenario: all is whole and vouched for, and running again completes it."""
    check_whole(tree_of(data), before, done)
    check_vouching(data)
    check_reading(SCENARIOS[name], data)
    act(name, root)
    assert meaning(tree_of(data)) == meaning(done), "running again does not complete it"
