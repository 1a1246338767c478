"""The datasets of the project, as their YAML files describe them, for whoever needs no assets."""

from pathlib import Path

import dagster as dg

from tfr_assets.components.dataset import TFRecordDataset
from tfr_assets.writing.dataset import Dataset

PROJECT = Path(__file__).parents[2]


def load_datasets(project: Path = PROJECT) -> dict[str, Dataset]:
    """Returns all datasets by name.

    Raises:
        ConfigError: A YAML file asks for something impossible.
    """
    tree = dg.ComponentTree.for_project(project)
    datasets = {}
    for file in sorted(tree.defs_module_path.rglob("defs.yaml")):
        component = tree.load_component(file.parent)
        if isinstance(component, TFRecordDataset):
            dataset = component.dataset(file.parent.name, project)
            datasets[dataset.name] = dataset
    return datasets
