"""The datasets of a project, as their YAML files describe them: all of them, or the one that a command needs."""

import os
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import dagster as dg
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.definitions import LazyDefinitions
from dagster_shared.record import replace
from pydantic import ValidationError

from tfr_assets.components.config.broken import build_broken
from tfr_assets.components.config.component import TFRecordDataset
from tfr_assets.components.config.yaml_files import check_yaml
from tfr_assets.components.runs.executor import build_executor
from tfr_assets.errors import ConfigError
from tfr_assets.project import Project, current_project
from tfr_assets.writing.dataset import Dataset

_CHECKING = "DAGSTER_IS_DEFS_VALIDATION_CLI"  # set by `dg check defs` and `dagster definitions validate`


def dataset_names(project: Project | None = None) -> list[str]:
    """Returns the names of the folders with a YAML file, which is not read.

    Args:
        project: The project; None: the current one.
    """
    return [path.parent.name for path in _files(project or current_project())]


def load_component(name: str, project: Project | None = None) -> tuple[TFRecordDataset, Dataset] | None:
    """Returns the component of one dataset, and the dataset; None for a YAML file of another kind.

    Args:
        name: The dataset's name.
        project: The project; None: the current one.

    Raises:
        ConfigError: The YAML file asks for something impossible.
    """
    project = project or current_project()
    file = _file(name, project)
    component = _component(file, _tree(file, project))
    return (component, _dataset(component, file, project)) if isinstance(component, TFRecordDataset) else None


def load_all(project: Project | None = None) -> dg.Definitions:
    """Returns the definitions of all datasets, and of what else lies in `defs/`.

    A mistake stays local: a dataset whose YAML cannot be loaded appears as an asset that says why, beside the others.

    Args:
        project: The project; None: the current one.

    Raises:
        ConfigError: `dg check defs` asks, and a YAML file cannot be loaded. (Its own look at YAML files is not enough:
            of several with the same component, `dg` checks one.)
    """
    project = project or current_project()
    tree = _defs(project)
    try:
        for file in _files(project):
            check_yaml(file)
        for name, count in Counter(dataset_names(project)).items():
            if count > 1:
                _file(name, project)
        return dg.load_from_defs_folder(path_within_project=project.root)
    except Exception:  # Dagster raises errors of many types, and tells of one dataset only
        parts: list[dg.Definitions] = []
        broken: dict[str, ConfigError] = {}
        for file in _files(project):
            try:
                parts.append(_definitions(file, project))
            except ConfigError as error:
                broken[file.parent.name] = error
        if not broken:  # it is a Python file that raises
            raise
    if broken and os.environ.get(_CHECKING):
        raise ConfigError("\n".join(str(error) for error in broken.values()))
    parts += [build_broken(name, error) for name, error in broken.items()]
    others = [path for path in _visible("*.py", tree) if path.name != "__init__.py"]
    parts += [_of_python(path, tree) for path in others]
    return dg.Definitions.merge(*parts)


def _definitions(file: Path, project: Project) -> dg.Definitions:
    """Returns what one YAML file defines; raises ConfigError if it cannot be loaded."""
    tree = _tree(file, project)
    component = _component(file, tree)
    if isinstance(component, TFRecordDataset):
        _file(file.parent.name, project)
        _dataset(component, file, project)
    try:
        return replace(tree.build_defs(), component_tree=None)  # of definitions with trees, only one can be merged
    except ComponentTreeException as error:
        raise ConfigError(f"{file}: {_reason(error)}") from error


def _of_python(path: Path, tree: dg.ComponentTree) -> dg.Definitions:
    """Returns what a Python file defines: by functions with `@dg.definitions`, if it has any, as Dagster does."""
    module = import_module(_module_of(path, tree))
    functions = [each for each in vars(module).values() if isinstance(each, LazyDefinitions)]
    if not functions:
        return dg.load_definitions_from_module(module)
    # a context knows the whole tree, which cannot be had where a YAML file is not even YAML
    return dg.Definitions.merge(*(each(tree.load_context if each.has_context_arg else None) for each in functions))


def _module_of(path: Path, tree: dg.ComponentTree) -> str:
    """Returns the name of a module, or of a folder's package, below `defs/`."""
    return ".".join([tree.defs_module_name, *path.relative_to(tree.defs_module_path).with_suffix("").parts])


def load_definitions(name: str) -> dg.Definitions:
    """Returns what the jobs of one dataset need: its own definitions, or those of all where it depends on others.

    The dataset is one of the current project. Definitions are loaded once, until `forget_definitions()`.

    Raises:
        ConfigError: The YAML file asks for something impossible.
    """
    return _load_definitions(name, current_project())


def forget_definitions() -> None:
    """Has the next `load_definitions` read the YAML again."""
    _load_definitions.cache_clear()


@cache
def _load_definitions(name: str, project: Project) -> dg.Definitions:
    file = _file(name, project)
    tree = _tree(file, project)
    component = _component(file, tree)
    if not isinstance(component, TFRecordDataset) or component.deps:
        every = load_all(project)
        return every if every.executor else dg.Definitions.merge(every, dg.Definitions(executor=build_executor()))
    _dataset(component, file, project)
    return dg.Definitions.merge(tree.build_defs(), dg.Definitions(executor=build_executor()))


@cache
def _defs(project: Project) -> dg.ComponentTree:
    project.make_importable()
    return dg.ComponentTree.for_project(project.root)


def _file(name: str, project: Project) -> Path:
    """Returns the YAML file of a dataset.

    Raises:
        ConfigError: There is none; or there are two, and all that is made of them would have the same names.
    """
    files = [file for file in _files(project) if file.parent.name == name]
    if len(files) > 1:
        files = [file for file in files if _may_be_dataset(file, project)] or files[:1]
    if not files:
        raise ConfigError(f"there is no dataset {name!r} in {_defs(project).defs_module_path}")
    if len(files) > 1:
        raise ConfigError(f"two datasets are called {name!r}: {files[0]} and {files[1]}. Rename one of the folders")
    return files[0]


def _may_be_dataset(file: Path, project: Project) -> bool:
    try:
        return isinstance(_component(file, _tree(file, project)), TFRecordDataset)
    except ConfigError:
        return True


def _files(project: Project) -> list[Path]:
    return _visible("defs.yaml", _defs(project))


def _visible(name: str, tree: dg.ComponentTree) -> list[Path]:
    """Returns files below `defs/`, but for hidden folders such as `.ipynb_checkpoints`: Dagster ignores them, too."""
    folder = tree.defs_module_path
    found = [file.relative_to(folder) for file in folder.rglob(name)]
    return sorted(folder / file for file in found if not any(part.startswith(".") for part in file.parts))


def _tree(file: Path, project: Project) -> dg.ComponentTree:
    """Returns the tree of one folder: to load one component, Dagster reads the YAML of all in its tree."""
    try:
        folder = import_module(_module_of(file.parent, _defs(project)))
    except ImportError as error:
        raise ConfigError(f"{file}: its folder cannot be imported: {error}. Use letters, digits and _") from error
    return dg.ComponentTree.from_module(folder, project.root)


def _component(file: Path, tree: dg.ComponentTree) -> dg.Component:
    check_yaml(file)
    try:
        return tree.load_component(file.parent)
    except Exception as error:  # of a type of its own for each way that a file is no component's
        raise ConfigError(f"{file}: {_reason(error)}") from error


def _dataset(component: TFRecordDataset, file: Path, project: Project) -> Dataset:
    try:
        return component.dataset(file.parent.name, project.root)
    except ConfigError as error:  # of fields that do not go together: no line is to blame
        raise ConfigError(f"{file}: {error}") from error


def _reason(error: Exception) -> str:
    """Returns what is wrong with the YAML, without Dagster's words around it."""
    cause = error.__cause__ or error if isinstance(error, ComponentTreeException) else error
    if isinstance(cause, ValidationError):
        return "; ".join(f"{_place(each['loc'])}{each['msg'].removeprefix('Value error, ')}" for each in cause.errors())
    return str(cause)


def _place(location: tuple[int | str, ...]) -> str:
    """Returns the line in what Dagster makes of a location: `attributes.shards at FILE:4`."""
    line = str(location[-1]).strip("`").rpartition(":")[2]
    return f"line {line}: " if line.isdigit() else ""
