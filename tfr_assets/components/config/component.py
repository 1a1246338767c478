"""The component `tfr_assets.TFRecordDataset`: fields in, definitions out."""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Self

import dagster as dg
from pydantic import BaseModel, PrivateAttr, ValidationError

from tfr_assets.components.assets.bench import build_bench
from tfr_assets.components.assets.current import build_current_sensor
from tfr_assets.components.assets.file_checks import build_merged_checks, build_shard_checks
from tfr_assets.components.assets.jobs import build_jobs
from tfr_assets.components.assets.merged import build_merged
from tfr_assets.components.assets.published import build_published
from tfr_assets.components.assets.raw import build_raw
from tfr_assets.components.assets.shards import build_shards
from tfr_assets.components.assets.verify_job import build_verify
from tfr_assets.components.attributes import Look
from tfr_assets.components.automation.follower import ON_CHANGE, build_follower
from tfr_assets.components.automation.schedule import build_schedule
from tfr_assets.components.automation.slice_watch import build_slice_watch
from tfr_assets.components.automation.watch import build_watch
from tfr_assets.components.config.fields import DatasetOptions
from tfr_assets.components.config.scaffold import DatasetScaffolder
from tfr_assets.components.config.translation import translation
from tfr_assets.components.config.yaml_errors import render, yaml_model
from tfr_assets.components.metadata.report import report_run_failure
from tfr_assets.components.runs.held_apart import hold_apart
from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout
from tfr_assets.option_groups import mistakes
from tfr_assets.sources import check_watchable, seen_from, slices_seen_from
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.sizing import as_planned


@dg.scaffold_with(DatasetScaffolder)
class TFRecordDataset(dg.Component, DatasetOptions, dg.Resolvable):
    """Tables in, verified TFRecord shards out, as one group of assets named after the folder of the YAML.

    Assets: `raw` (what data is there), `shards` (one file a partition, written in parallel), `merged` (one file).
    With `publish`, also `published` (the same in an object store). Checks read every file back. Jobs: `Refresh_NAME`,
    `Verify_NAME` and `Plan_shards_NAME`. With `bench`, also `readers` and `reader_report` (how fast they are read, and
    which reader is best), `writers` and `writer_report` (how fast they can be written), and the jobs
    `Bench_readers_NAME` and `Bench_writers_NAME`.

    Start with `dg scaffold defs tfr_assets.TFRecordDataset NAME --source PATH`.
    """

    _context: dg.ResolutionContext | None = PrivateAttr(default=None)  # fills in the templates of `translation`

    @classmethod
    @cache
    def model(cls) -> type[BaseModel]:
        """Returns the model of the YAML, which says what is wrong in words of this project."""
        return yaml_model(cls.__name__, DatasetOptions)

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> Self:
        """Returns the component of what is written in YAML, with its templates filled in.

        Raises:
            ConfigError: What templates became is invalid.
        """
        written = {
            # templates of the translation are filled in for each asset
            name: value if name == "translation" else render(context.at_path(name), value)
            for name in model.model_fields_set
            for value in [getattr(model, name)]
        }
        try:
            made = cls.model_validate(written)
        except ValidationError as error:  # what is written was checked before; the line is that of the field
            field = str(error.errors()[0]["loc"][0])
            raise context.at_path(field).build_resolve_fn_exc(["; ".join(mistakes(error))], field, model) from None
        made._context = context
        return made

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
        watch = build_slice_watch if self.slices else build_watch
        made = dg.Definitions(
            assets=[build_raw(look, self.deps), build_shards(look), build_merged(look)],
            asset_checks=[build_shard_checks(look), build_merged_checks(look)],
            jobs=[*build_jobs(look), build_verify(look)],
            schedules=[build_schedule(look, self.schedule, self.deps)] if self.schedule else [],
            sensors=[
                build_current_sensor(look),
                *([watch(look, self.watch)] if self.watch else []),
                *([build_follower(look)] if self.automation else []),
            ],
        )
        published = [build_published(look, self.publish)] if self.publish else []
        whole = dg.Definitions.merge(made, dg.Definitions(assets=published), build_bench(look, self.bench))
        if self.translation is None:
            return whole
        translate = translation(self.translation, self._context or context.resolution_context, look.key("raw"))
        return whole.map_resolved_asset_specs(func=translate)

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
        dataset = Dataset(
            name,
            source,
            1,
            self.compression,
            self.features,
            auto=auto,
            shards_per_step=self.shards_per_step,
            project=project,
            publish=self.publish,
            slices=slices_seen_from(project, self.slices),
        )
        self._check_slices()
        return as_planned(dataset) if self.shards is None else replace(dataset, shards=self.shards)

    def _check_slices(self) -> None:
        """Refuses what has no meaning yet where raw data comes in slices."""
        if self.slices is None:
            return
        if self.bench.readers or self.bench.writers:
            raise ConfigError("bench: does not work with `slices`; remove it, `tfr bench` measures a slice's folder")
        if self.slices.append and self.schedule:
            raise ConfigError(
                "schedule: would take files that are still growing into the next slice of what is appended; set `watch`"
            )
