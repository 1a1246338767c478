"""The datasets of the project, as their YAML files describe them, for whoever needs no assets."""

from pathlib import Path

import dagster as dg
import yaml
from dagster.components.core.component_tree import ComponentTreeException
from dagster_shared.check import CheckError
from dagster_shared.error import DagsterUnresolvableSymbolError
from pydantic import ValidationError

from tfr_assets.components.dataset import TFRecordDataset
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
    tree = dg.ComponentTree.for_project(project)
    files = sorted(tree.defs_module_path.rglob("defs.yaml"))
    for file in files:  # Dagster reads all of them to load one, and does not say which one it could not read
        _check_syntax(file)
    components = {}
    for file in files:
        try:
            component = tree.load_component(file.parent)
        except ComponentTreeException as error:
            raise ConfigError(f"{file}: {_reason(error)}") from error
        except (DagsterUnresolvableSymbolError, CheckError) as error:
            raise ConfigError(f"a file in {tree.defs_module_path} cannot be loaded: {error}") from error
        if isinstance(component, TFRecordDataset):
            try:
                dataset = component.dataset(file.parent.name, project)
            except ConfigError as error:  # of fields that do not go together: no line is to blame
                raise ConfigError(f"{file}: {error}") from error
            components[dataset.name] = (component, dataset)
    return components


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
