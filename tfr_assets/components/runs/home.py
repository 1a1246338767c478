"""Folders that `dagster.yaml` names: relative ones lie in `$DAGSTER_HOME`, wherever Dagster is started."""

import os
from pathlib import Path
from typing import Any

from dagster._core.storage.root import LocalArtifactStorage
from dagster._serdes import ConfigurableClassData


def in_home(folder: str) -> str:
    """Returns a folder's absolute path."""
    return str(Path(os.environ.get("DAGSTER_HOME") or Path.cwd(), folder).expanduser().absolute())


class ArtifactStorage(LocalArtifactStorage):
    """Dagster's own, whose folder may be relative to `$DAGSTER_HOME`."""

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> "ArtifactStorage":
        """See `ConfigurableClass`."""
        return cls(in_home(config_value["base_dir"]), inst_data)
