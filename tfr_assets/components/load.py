"""The datasets of the project, as their YAML files describe them: all of them, or the one that a command needs."""

from functools import cache
from importlib import import_module
from pathlib import Path

import dagster as dg
import yaml
from dagster.components.core.component_tree import ComponentTreeException
from dagster_shared.check import CheckError
from dagster_shared.error import DagsterUnresolvableSymbolError
from pydantic import ValidationError

from tfr_assets.components.dataset import TFRecordDataset
from tfr_assets.components.executor import build_executor
from tfr_assets.errors import ConfigError
from tfr_assets.writing.dataset import Dataset

PROJECT = Path(__file__).parents[2]


def load_datasets(project: Path = PROJECT) -> dict[str, Dataset]:
    """Returns all datasets by name. Raises as `load_components`."""
    return {name: dataset for name, (_, dataset) in load_components(project).items()}


def load_components(project: Path = PROJECT) -> dict[str, tuple[TFRecordDataset, Dataset]]:
    """Returns the components of all datasets by name, and the datasets.

    Raises:
        ConfigError: A YAML file asks for something impossible.
    """
    found = {name: load_component(name, project) for name in dataset_names(project)}
    return {name: both for name, both in found.items() if both is not None}


def dataset_names(project: Path = PROJECT) -> list[str]:
    """Returns the names of the folders with a YAML file, which is not read."""
    return [path.parent.name for path in sorted(_defs(project).defs_module_path.rglob("defs.yaml"))]


def load_component(name: str, project: Path = PROJECT) -> tuple[TFRecordDataset, Dataset] | None:
    """Returns the component of one dataset, and the dataset; None for a YAML file of another kind.

    Raises:
        ConfigError: The YAML file asks for something impossible.
    """
    file = _file(name, project)
    component = _component(file, _tree(file, project))
    return (component, _dataset(component, file, project)) if isinstance(component, TFRecordDataset) else None


@cache
def load_definitions(name: str, project: Path = PROJECT) -> dg.Definitions:
    """Returns what the jobs of one dataset need: its own definitions, or those of all where it depends on others.

    They are loaded once; `load_definitions.cache_clear()` has the next call read the YAML again.

    Raises:
        ConfigError: The YAML file asks for something impossible.
    """
    file = _file(name, project)
    tree = _tree(file, project)
    component = _component(file, tree)
    if isinstance(component, TFRecordDataset):
        _dataset(component, file, project)
        if component.deps:
            tree = dg.ComponentTree.for_project(project)
    return dg.Definitions.merge(tree.build_defs(), dg.Definitions(executor=build_executor()))


@cache
def _defs(project: Path) -> dg.ComponentTree:
    return dg.ComponentTree.for_project(project)


def _file(name: str, project: Path) -> Path:
    files = _defs(project).defs_module_path.rglob("defs.yaml")
    return next(file for file in sorted(files) if file.parent.name == name)


def _tree(file: Path, project: Path) -> dg.ComponentTree:
    """Returns the tree of one folder: to load one component, Dagster reads the YAML of all in its tree."""
    defs = _defs(project)
    folder = file.parent.relative_to(defs.defs_module_path)
    return dg.ComponentTree.from_module(import_module(".".join([defs.defs_module_name, *folder.parts])), project)


def _component(file: Path, tree: dg.ComponentTree) -> dg.Component:
    _check_syntax(file)
    try:
        return tree.load_component(file.parent)
    except ComponentTreeException as error:
        raise ConfigError(f"{file}: {_reason(error)}") from error
    except (DagsterUnresolvableSymbolError, CheckError) as error:
        raise ConfigError(f"{file}: {error}") from error


def _dataset(component: TFRecordDataset, file: Path, project: Path) -> Dataset:
    try:
        return component.dataset(file.parent.name, project)
    except ConfigError as error:  # of fields that do not go together: no line is to blame
        raise ConfigError(f"{file}: {error}") from error


def _check_syntax(file: Path) -> None:
    try:
        empty = not any(yaml.safe_load_all(file.read_text()))
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: is no YAML: {error}") from error
    if empty:
        raise ConfigError(
            f"{file}: is empty; it starts with `type: tfr_assets.TFRecordDataset`. Write it, or remove the file"
        )


def _reason(error: ComponentTreeException) -> str:
    """Returns what is wrong with the YAML, without Dagster's words around it."""
    cause = error.__cause__ or error
    if isinstance(cause, ValidationError):
        return "; ".join(f"{_place(each['loc'])}{each['msg'].removeprefix('Value error, ')}" for each in cause.errors())
    return str(cause)


def _place(location: tuple[int | str, ...]) -> str:
    """Returns the line in what Dagster makes of a location: `attributes.shards at FILE:4`."""
    line = str(location[-1]).strip("`").rpartition(":")[2]
    return f"line {line}: " if line.isdigit() else ""
