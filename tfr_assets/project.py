"""The Dagster project that a command works for, found as `dg` finds it: the one around the working directory.

A project is a folder with a `pyproject.toml` that has `[tool.dg.project]`, or with a `dg.toml` that has `[project]`:
https://docs.dagster.io/api/clis/dg-cli/dg-cli-configuration. `$TFR_PROJECT`, which `tfr --project` sets, names
another one. What our own part of it is set to stands in its `pyproject.toml`, too:

    [tool.tfr-assets]
    data = "s3://lake/team"

Imports nothing heavy: training code asks where data lies, too.
"""

import importlib.util
import os
import sys
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from tfr_assets.errors import ConfigError, suggestion

PROJECT_VARIABLE = "TFR_PROJECT"
_FILES = {"dg.toml": ("project",), "pyproject.toml": ("tool", "dg", "project")}
_SETTINGS_FILE, _SETTINGS = "pyproject.toml", ("tool", "tfr-assets")


@dataclass(frozen=True)
class Project:
    """A Dagster project.

    Attributes:
        root: Its folder.
        root_module: The package that holds its definitions.
        defs_module: The package whose folders are the datasets.
        definitions_module: The module that Dagster loads.
        location: What Dagster calls its code location.
    """

    root: Path
    root_module: str
    defs_module: str
    definitions_module: str
    location: str

    @property
    def defs(self) -> Path | None:
        """Folder that holds a folder for each dataset; None where it lies outside of the project. Imports nothing."""
        parts = self.defs_module.split(".")
        return next((path for path in (base.joinpath(*parts) for base in self._bases) if path.is_dir()), None)

    @property
    def _bases(self) -> tuple[Path, Path]:
        return self.root / "src", self.root

    def make_importable(self) -> None:
        """Has the project's own package imported, also where another one of its name is installed.

        One that is installed is taken where the project's folder holds none.
        """
        package = self.root_module.partition(".")[0]
        if package in sys.modules:
            return
        found = importlib.util.find_spec(package)
        has_own = any((base / name).exists() for base in self._bases for name in (package, f"{package}.py"))
        if found is None or (has_own and not self._holds(found)):
            sys.path[:0] = [str(base) for base in self._bases if base.is_dir()]

    def _holds(self, package: ModuleSpec) -> bool:
        """Whether a package, or module, lies in the project's folder."""
        folders = package.submodule_search_locations or [str(Path(package.origin or "/").parent)]
        return any(Path(folder).resolve().is_relative_to(self.root.resolve()) for folder in folders)


def find_project(start: Path | None = None) -> Project | None:
    """Returns the project of `$TFR_PROJECT`, else the nearest one at or above a folder; None if there is none.

    Args:
        start: The folder; None: the working directory.

    Raises:
        ConfigError: `$TFR_PROJECT` names no project, or a project's configuration is broken.
    """
    if start is None and (named := os.environ.get(PROJECT_VARIABLE)):  # set but empty counts as unset
        folder = Path(named).expanduser().absolute()
        if found := _project_in(folder):
            return found
        raise ConfigError(f"{folder} is not a Dagster project: it has no pyproject.toml with [tool.dg.project]")
    here = (start or Path.cwd()).absolute()
    return next((found for folder in (here, *here.parents) if (found := _project_in(folder))), None)


def current_project() -> Project:
    """Returns the project of `$TFR_PROJECT`, else the one around the working directory.

    Raises:
        ConfigError: There is none, or its configuration is broken.
    """
    if found := find_project():
        return found
    raise ConfigError(
        f"there is no Dagster project in {Path.cwd()} or above it. Go to the project's folder, or name it: "
        "tfr --project FOLDER. `pip install create-dagster`, then `create-dagster project NAME`, makes a new one"
    )


def data_setting(root: Path) -> str | None:
    """Returns where a project says that its data lies, a folder or a URL; None: it says nothing.

    Args:
        root: The project's folder.

    Raises:
        ConfigError: What it says of us cannot be understood.
    """
    path = root / _SETTINGS_FILE
    try:
        status = path.stat()
    except OSError:
        return None
    return _data_setting(path, (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=32)
def _data_setting(path: Path, _state: tuple[int, int]) -> str | None:
    settings = _table(path, _SETTINGS) or {}
    where = f"{path}: [{'.'.join(_SETTINGS)}]"
    if unknown := next((name for name in settings if name != "data"), None):
        raise ConfigError(f"{where} {unknown}: {suggestion(unknown, ['data'], 'there is only')}")
    data = settings.get("data")
    if data is not None and not (isinstance(data, str) and data):
        raise ConfigError(f"{where} data: expected a folder or a URL, such as 's3://lake/team'; found {data!r}")
    return data


def _project_in(folder: Path) -> Project | None:
    for name, place in _FILES.items():
        table = _table(folder / name, place)
        if table is None:
            continue
        root_module = table.get("root_module")
        if not isinstance(root_module, str):
            raise ConfigError(f"{folder / name}: [{'.'.join(place)}] needs `root_module`, the name of a package")
        return Project(
            root=folder,
            root_module=root_module,
            defs_module=table.get("defs_module") or f"{root_module}.defs",
            definitions_module=table.get("code_location_target_module") or f"{root_module}.definitions",
            location=table.get("code_location_name") or folder.name,
        )
    return None


def _table(path: Path, place: tuple[str, ...]) -> dict[str, Any] | None:
    try:
        found: Any = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    for key in place:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None
