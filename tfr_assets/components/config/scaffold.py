"""A new dataset's YAML, written by `dg scaffold defs tfr_assets.TFRecordDataset NAME`."""

import textwrap
from typing import Any

import dagster as dg
import yaml
from pydantic import BaseModel, Field

from tfr_assets.components.config.fields import DatasetOptions
from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout

_HEAD = """\
# Every option, also of images, recordings and texts: dg utils inspect-component tfr_assets.TFRecordDataset
type: {type}

attributes:
"""


class ScaffoldParams(BaseModel):
    """What can be given on the command line."""

    source: str = Field(
        "raw/CHANGE_ME.parquet",
        description="Where the raw data is: a file, a folder, a glob or a URL, relative to the project's root.",
    )
    shards: int = Field(16, description="Number of files.")


class DatasetScaffolder(dg.Scaffolder[ScaffoldParams]):
    """Writes a commented YAML that is valid as it is, but for the path of the raw data."""

    @classmethod
    def get_scaffold_params(cls) -> type[ScaffoldParams]:
        """Returns the model of the parameters."""
        return ScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldParams]) -> None:
        """Writes `defs.yaml`."""
        try:
            Layout.of(request.target_path.name)
        except ConfigError:
            request.target_path.rmdir()  # made a moment ago; an empty folder would be in the way of the next attempt
            raise
        fields = "\n\n".join(_field(name, request.params) for name in DatasetOptions.model_fields)
        head = _HEAD.format(type=request.type_name)
        (request.target_path / "defs.yaml").write_text(f"{head}{fields}\n", "utf-8")


def _field(name: str, params: ScaffoldParams) -> str:
    """Returns the lines of one field: what it is, the value that is given, and examples as comments."""
    field = DatasetOptions.model_fields[name]
    lines = textwrap.wrap(field.description or "", 110, initial_indent="  # ", subsequent_indent="  # ")
    examples = [f"  # {_line(name, example)}" for example in field.examples or ()]
    given = [f"  {_line(name, value)}"] if (value := getattr(params, name, None)) is not None else []
    return "\n".join([*lines, *examples, *given])


def _line(name: str, value: Any) -> str:
    line: str = yaml.safe_dump({name: value}, default_flow_style=True, sort_keys=False, allow_unicode=True, width=9999)
    return line.strip()[1:-1]
