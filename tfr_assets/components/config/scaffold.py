"""A new dataset's YAML, written by `dg scaffold defs tfr_assets.TFRecordDataset NAME`."""

import json
from typing import Any

import dagster as dg
from pydantic import BaseModel, Field

from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout

_TEMPLATE = """\
type: {type}

attributes:
  # Where the raw data is: Parquet, CSV (also zipped), JSON lines or Arrow; a file, a folder, a glob or a URL.
  # Relative paths start at the project's root. A Python function instead:
  #   source: {{callable: "my_package.my_module:my_rows"}}
  # Photographs, recordings, texts: {{images: photos/}}, {{audio: recordings/}}, {{text: corpus/}}
  # Links out of such a folder are ignored, unless: {{images: {{path: photos/, follow_links: true}}}}
  source: {source}

  # Number of files, or auto. Best are 100 to 200 MB each; for less data it does not matter.
  shards: {shards}

  # splits: {{train: 0.8, validation: 0.1, test: 0.1}}
  # deps: [my_group/my_files]    # assets that make the raw data
  # description: What the data is.
  # owners: [me@example.com, "team:data"]
  # tags: {{domain: my_domain}}
  # compression: gzip            # default: none, the fastest
  # shuffle: 42                  # a seed: shuffle all rows once, before they are cut into shards
  # bench:                       # measurements that appear in the UI; `tfr bench` needs none of this
  #   readers: {{batch_size: 4096, only: [vectorized, columnar]}}
  #   writers: {{workers: [1, 2, 4], repeats: 5}}
  # schedule: "0 6 * * *"        # refresh every day at 06:00 UTC
  # watch: 60                    # look at the raw files every 60 s, and refresh after a change
  # automation: on_change        # shards and merged follow when raw is materialized with another content
  # freshness: 26                # hours after which the merged file is late
  # features:                    # default: every column becomes a feature
  #   drop: [comment]
  #   rename: {{dep_delay: delay}}
  #   cast: {{price: float32}}
  #   shape: {{pixels: [28, 28]}}
  #   fill: {{dep_delay: 0}}
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
        yaml = _TEMPLATE.format(
            type=request.type_name, source=_quoted(request.params.source), shards=request.params.shards
        )
        (request.target_path / "defs.yaml").write_text(yaml)


def _quoted(text: str) -> Any:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a YAML string, whatever stands in it
