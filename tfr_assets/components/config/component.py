"""The component `tfr_assets.TFRecordDataset`: fields in, definitions out."""

from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field

from tfr_assets.components.assets.automation import ON_CHANGE, build_follower, build_schedule, build_watch
from tfr_assets.components.assets.bench import Bench, build_bench
from tfr_assets.components.assets.current import build_current_sensor
from tfr_assets.components.assets.file_checks import build_merged_checks, build_shard_checks
from tfr_assets.components.assets.jobs import build_jobs
from tfr_assets.components.assets.merged import build_merged
from tfr_assets.components.assets.raw import build_raw
from tfr_assets.components.assets.shards import build_shards
from tfr_assets.components.assets.verify_job import build_verify
from tfr_assets.components.attributes import Look
from tfr_assets.components.config.fields import (
    PARSERS,
    BenchField,
    FeaturesField,
    SourceField,
    SplitsField,
)
from tfr_assets.components.config.scaffold import DatasetScaffolder
from tfr_assets.components.config.yaml_errors import render, with_parsers
from tfr_assets.components.metadata.report import report_run_failure
from tfr_assets.components.runs.held_apart import hold_apart
from tfr_assets.layout import Layout
from tfr_assets.records.schema.features import FeatureOptions
from tfr_assets.sources import Source, Splits, check_watchable, seen_from
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.sizing import as_planned


def _field(name: str, yaml_type: Any, description: str, *examples: Any) -> dg.Resolver:
    return dg.Resolver(
        lambda context, value: PARSERS[name](render(context, value)),
        model_field_type=yaml_type,
        description=description,
        examples=list(examples),
        inject_before_resolve=False,
    )


@dg.scaffold_with(DatasetScaffolder)
class TFRecordDataset(dg.Component, dg.Model, dg.Resolvable):
    """Tables in, verified TFRecord shards out, as one group of assets named after the folder of the YAML.

    Assets: `raw` (what data is there), `shards` (one file a partition, written in parallel), `merged` (one file).
    Checks read every file back. Jobs: `Refresh_NAME`, `Verify_NAME` and `Plan_shards_NAME`. With `bench`, also
    `readers` and `reader_report` (how fast they are read, and which reader is best), `writers` and `writer_report` (how
    fast they can be written), and the jobs `Bench_readers_NAME` and `Bench_writers_NAME`.

    Start with `dg scaffold defs tfr_assets.TFRecordDataset NAME --source PATH`.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    source: Annotated[
        Source,
        _field(
            "source",
            str | SourceField,
            "Where the raw data is. Tables: Parquet, CSV (also zipped), JSON lines or Arrow; a file, a folder, a glob, "
            "or an fsspec URL of these; or a Python function. Or `images`, `audio`, `text`, `mixed`. Relative paths "
            "start at the project's root.",
            "raw/my_data.parquet",
            "s3://bucket/table/*.parquet",
            {"path": "raw/*.csv.gz", "options": {"delimiter": ";"}},
            {"callable": "my_package.my_module:my_rows"},
            {"images": "photos/"},
        ),
    ]
    shards: Annotated[
        int | dict[str, int] | None,
        _field(
            "shards",
            int | str | dict[str, int],
            "Number of files, each one partition: of every split, or by split. Best are files of 100 to 200 MB; for "
            "less data it does not matter. `auto` plans it anew in every refresh; partitions are then the splits.",
            16,
            {"train": 16, "test": 2},
            "auto",
        ),
    ] = 16
    splits: Annotated[
        Splits | None,
        _field(
            "splits",
            dict[str, float] | SplitsField,
            "How records are dealt to splits: shares, by a hash of each record, so that new data never moves old "
            "records; or by a column, or by folder. Default: all are one split, `train`.",
            {"train": 0.8, "validation": 0.1, "test": 0.1},
            {"fractions": {"train": 0.9, "test": 0.1}, "key": "user_id"},
            {"column": "part", "values": ["train", "test"]},
            {"folder": ["train", "test"]},
        ),
    ] = None
    compression: Annotated[
        str,
        _field(
            "compression",
            str,
            "`none`, `gzip` or `zlib`. `none` is by far the fastest to write and to read.",
            "none",
            "gzip",
        ),
    ] = "none"
    features: Annotated[
        FeatureOptions,
        _field(
            "features",
            FeaturesField,
            "What to do with which column: drop, rename, cast, shape, fill. Default: every column becomes a feature.",
            {"drop": ["comment"], "rename": {"dep_delay": "delay"}, "cast": {"price": "float32"}},
        ),
    ] = FeatureOptions()
    shuffle: Annotated[
        int | None,
        _field(
            "shuffle",
            int,
            "A seed: all rows are shuffled once, by it, before they are cut into shards. Default: rows stay in order.",
            42,
        ),
    ] = None
    bench: Annotated[
        Bench,
        _field(
            "bench",
            BenchField,
            "What is measured, as assets in the group NAME_bench: `readers` (batch_size, epochs, repeats, only, "
            "step_ms, decode_ms), `writers` (rows, workers, repeats, only). Default: nothing; `tfr bench` needs none "
            "of it.",
            {"readers": {"batch_size": 4096, "only": ["vectorized", "columnar"]}},
            {"writers": {"rows": 50_000, "workers": [1, 2, 4], "only": ["sharded_threads", "single_writer_queue"]}},
        ),
    ] = Bench()
    deps: Annotated[
        list[dg.AssetKey],
        _field(
            "deps",
            list[str],
            "Assets that make the raw data, by key: `raw` depends on them, and a refresh materializes them first.",
            ["samples/digits"],
        ),
    ] = Field(default_factory=list)
    schedule: Annotated[
        str | None,
        _field(
            "schedule",
            str,
            "When the dataset is refreshed: a cron expression, in UTC. It runs as soon as the daemon does.",
            "0 6 * * *",
            "@daily",
        ),
    ] = None
    watch: Annotated[
        int | None,
        _field(
            "watch",
            int,
            "Seconds between two looks at the raw files, which read none of them. After a change, a refresh runs.",
            60,
        ),
    ] = None
    automation: Annotated[
        str | None,
        _field(
            "automation",
            str,
            "`on_change`: shards and merged are materialized by themselves when what they are made from has changed.",
            "on_change",
        ),
    ] = None
    freshness: Annotated[
        timedelta | None,
        _field(
            "freshness",
            float,
            "Hours after which the merged file is late, which its health in the UI then shows.",
            26,
        ),
    ] = None
    description: Annotated[
        str,
        _field("description", str, "What the data is; shown with each asset.", "All flights out of New York, 2013."),
    ] = ""
    owners: Annotated[
        list[str],
        _field(
            "owners",
            list[str],
            "E-mail addresses and teams, the latter as `team:name`.",
            ["me@example.com", "team:data"],
        ),
    ] = Field(default_factory=list)
    tags: Annotated[
        dict[str, str],
        _field("tags", dict[str, Any], "Keys and values to filter assets by.", {"domain": "travel"}),
    ] = Field(default_factory=dict)

    @classmethod
    @cache
    def model(cls) -> type[BaseModel]:
        """Returns the model of the YAML, which says what is wrong in words of this project."""
        return with_parsers(super().model(), PARSERS)

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Returns what the catalog of components shows."""
        return dg.ComponentTypeSpec(
            tags=["tfrecord", "tensorflow", "machine-learning"],
            produces=["asset", "asset_check", "job", "schedule", "sensor"],
        )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Returns the definitions of the dataset that is named after the YAML's folder."""
        folder = context.path if context.path.is_dir() else context.path.parent
        dataset = self.dataset(folder.name, context.project_root)
        look = Look(
            dataset,
            self.description,
            self.owners,
            self.tags,
            follows=ON_CHANGE if self.automation else None,
            freshness=self.freshness,
        )
        hold_apart(dataset, partial(report_run_failure, look))
        partitions = dg.StaticPartitionsDefinition(look.partition_keys)
        made = dg.Definitions(
            assets=[build_raw(look, self.deps), build_shards(look, partitions), build_merged(look)],
            asset_checks=[build_shard_checks(look, partitions), build_merged_checks(look)],
            jobs=[*build_jobs(look, partitions), build_verify(look)],
            schedules=[build_schedule(look, self.schedule, self.deps)] if self.schedule else [],
            sensors=[
                build_current_sensor(look),
                *([build_watch(look, self.watch)] if self.watch else []),
                *([build_follower(look)] if self.automation else []),
            ],
        )
        return dg.Definitions.merge(made, build_bench(look, self.bench))

    def dataset(self, name: str, project: Path) -> Dataset:
        """Returns the dataset as the rooms below know it.

        Args:
            name: Its name: that of the YAML's folder.
            project: The project's root, where relative paths start.

        Raises:
            ConfigError: The name cannot be a folder's, a file's and an asset's at once.
        """
        Layout.of(name)  # says what is wrong with a name before Dagster says that of an op it was never told of
        source = replace(seen_from(project, self.source), shuffle_seed=self.shuffle, splits=self.splits)
        if self.watch:
            check_watchable(source)
        auto = self.shards is None
        dataset = Dataset(name, source, 1, self.compression, self.features, auto=auto, project=project)
        return as_planned(dataset) if self.shards is None else replace(dataset, shards=self.shards)
