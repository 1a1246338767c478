"""What may stand in a dataset's YAML. The YAML's model, the scaffold and the reference are made from `DatasetOptions`.

Owners, tags and cron expressions are put to Dagster itself, so that the two never disagree.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

import dagster as dg
from dagster.components.resolved.core_models import AssetAttributesModel
from pydantic import ConfigDict, Field, PlainValidator, Strict, ValidationError

from tfr_assets.components.assets.bench import Bench
from tfr_assets.errors import ConfigError
from tfr_assets.layout import MAX_SHARDS
from tfr_assets.option_groups import Expect, OneOf, Whole, either, problem, problem_at, unknown
from tfr_assets.records.frames.compression import COMPRESSIONS
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.sources.model.parse import SourceOption, SplitsOption
from tfr_assets.sources.model.slices import Slices
from tfr_assets.urls import SCHEMES, is_object_url, split_url

ON_CHANGE = "on_change"
_SOONEST = 10  # seconds between two looks at the raw files; listing many takes a while
_LONGEST_HOURS = 24 * 366
TRANSLATED = ("group_name", "tags", "kinds", "owners", "description", "metadata", "deps", "automation_condition")
_SEED = Expect("a seed, a whole number from 0 up such as 42", remedy="Leave the line out to keep the rows in order")


_Count = Annotated[int, Field(ge=1, le=MAX_SHARDS)]


def _shards(value: Any) -> int | dict[str, int] | None:
    """Returns the number of shards, of every split or by split; None for `auto`."""
    if isinstance(value, str) and value == "auto":
        return None
    for count in (counts := value.values() if isinstance(value, Mapping) else [value]):
        if type(count) is not int or not 1 <= count <= MAX_SHARDS:
            raise problem(
                f"expected a whole number from 1 to {MAX_SHARDS}, such as 16, or shards: auto; found {count!r}"
            )
    return {str(split): count for split, count in value.items()} if isinstance(value, Mapping) else next(iter(counts))


def _asset_key(value: Any) -> dg.AssetKey:
    if isinstance(value, dg.AssetKey):
        return value
    if not isinstance(value, str) or not all(value.split("/")):
        raise problem(f"{value!r} is not an asset's key, such as my_group/my_files")
    return dg.AssetKey(value.split("/"))


def _url(value: Any) -> str:
    if not is_object_url(value):
        schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise problem(f"expected a URL that begins with {schemes}, such as s3://bucket/my_data; found {value!r}")
    try:
        split_url(value)
    except ConfigError as error:
        raise problem(str(error)) from error
    return str(value)


def _cron(value: Any) -> str:
    try:
        dg.ScheduleDefinition(name="check", job_name="check", cron_schedule=str(value))
    except dg.DagsterError as error:
        raise problem(
            f"{value!r} is not a cron expression. Write minute, hour, day of month, month and day of week, "
            "such as '0 6 * * *' for every day at 06:00"
        ) from error
    return str(value)


def _hours(value: Any) -> timedelta:
    hours = value.total_seconds() / 3600 if isinstance(value, timedelta) else value
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 1 / 60 <= hours <= _LONGEST_HOURS:
        raise problem(f"expected a number of hours, at least a minute, such as 26; found {value!r}")
    return timedelta(hours=hours)


def _owner(value: Any) -> str:
    try:
        dg.AssetSpec("check", owners=[str(value)])
    except dg.DagsterError as error:
        raise problem(f"{value!r} is neither an e-mail address nor a team, which is written 'team:name'") from error
    return str(value)


def _translation(value: Any) -> Mapping[str, Any]:
    """Returns what Dagster's own translation takes, templates not yet filled in, if it leaves alone what runs go by."""
    if not isinstance(value, Mapping):
        raise problem(f"expected a mapping with {either(TRANSLATED)}; found {value!r}")
    for name in value:
        if name in ("key", "key_prefix", "partitions_def", "code_version", "skippable"):
            raise problem_at(
                (name,),
                "cannot be changed: runs, jobs and readers go by it. A key begins with the folder's name",
            )
        if name not in TRANSLATED:
            raise problem_at((str(name),), unknown(name, TRANSLATED))
    try:
        AssetAttributesModel(**value)
    except ValidationError as error:
        raise problem("; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())) from error
    return value


def _tags(value: Any) -> dict[str, str]:
    """Returns the tags; numbers and truth values become text, as YAML writes many a text without quotes."""
    if not isinstance(value, Mapping):
        raise problem(f"expected keys with values, such as {{domain: travel}}; found {value!r}")
    tags = {str(key): str(tag).lower() if isinstance(tag, bool) else str(tag) for key, tag in value.items()}
    for key, tag in tags.items():
        try:
            dg.AssetSpec("check", tags={key: tag})
        except dg.DagsterError as error:
            text = f"{tag!r} cannot be a tag. Use up to 63 letters, digits, '_', '-' and '.' for key and value"
            raise problem_at((key,), text, tag) from error
    return tags


class DatasetOptions(dg.Model):
    """The fields of a dataset's YAML, below `attributes`."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    source: SourceOption = Field(
        description="Where the raw data is. Tables: Parquet, CSV (also zipped), JSON lines or Arrow; a file, a folder, "
        "a glob, or an fsspec URL of these; or a Python function. Or `images`, `audio`, `text`, `mixed`. Relative "
        "paths start at the project's root.",
        examples=[
            "raw/my_data.parquet",
            "s3://bucket/table/*.parquet",
            {"path": "raw/*.csv.gz", "options": {"delimiter": ";"}},
            "raw/{slice:%Y/%m/%d}/*.parquet",
            {"callable": "my_package.my_module:my_rows"},
            {"images": "photos/"},
            {"images": {"path": "photos/", "follow_links": True}},
            {"audio": "recordings/"},
            {"text": "corpus/"},
        ],
    )
    shards: Annotated[
        int | dict[str, int] | None,
        PlainValidator(_shards, json_schema_input_type=_Count | Literal["auto"] | dict[str, _Count]),
    ] = Field(
        default=16,
        description="Number of files, each one partition: of every split, or by split; with `slices`, of every "
        "slice, too. Best are files of 100 to 200 MB; for less data it does not matter. `auto` plans it anew in every "
        "refresh; partitions are then the splits.",
        examples=[16, {"train": 16, "test": 2}, "auto"],
    )
    shards_per_step: Annotated[int, Whole(1, example="8")] = Field(
        default=1,
        description="How many shards one step of a run writes, one after the other. More than one where a step is "
        "dear, such as a pod; each shard stays a partition of its own.",
        examples=[8],
    )
    slices: Slices | None = Field(
        default=None,
        description="Raw data that arrives in slices: hours, days, weeks, months, or names. The source says with "
        "`{slice}`, or `{slice:%Y/%m/%d}`, where each is. Every slice is a partition, is made by a run of its own, and "
        "has its own shards and merged file. Those of a folder, or of what is appended, become more by themselves. "
        "Default: all raw data is one.",
        examples=[
            {"daily": "2026-01-01"},
            {"monthly": "2026-01"},
            {"values": ["eu", "us"]},
            {"folder": "raw/events"},
            {"append": True},
        ],
    )
    splits: SplitsOption | None = Field(
        default=None,
        description="How records are assigned to splits: shares, by a hash of each record, so that new data never "
        "moves old records; or by a column, or by folder. Default: all are one split, `train`.",
        examples=[
            {"train": 0.8, "validation": 0.1, "test": 0.1},
            {"fractions": {"train": 0.9, "test": 0.1}, "key": "user_id"},
            {"column": "part", "values": ["train", "test"]},
            {"folder": ["train", "test"]},
        ],
    )
    compression: Annotated[str, OneOf(tuple(COMPRESSIONS))] = Field(
        default="none",
        description="`none`, `gzip` or `zlib`. `none` is by far the fastest to write and to read.",
        examples=["gzip"],
    )
    features: FeatureOptions = Field(
        default_factory=FeatureOptions,
        description="What to do with which column. Default: every column becomes a feature.",
        examples=[
            {"drop": ["comment"], "rename": {"dep_delay": "delay"}, "cast": {"price": "float32"}},
            {"shape": {"pixels": [28, 28]}, "fill": {"dep_delay": 0}, "names": {"label": ["cat", "dog"]}},
        ],
    )
    shuffle: Annotated[int, Strict(), Field(ge=0), _SEED] | None = Field(
        default=None,
        description="A seed: all rows are shuffled once, by it, before they are cut into shards. Default: rows stay in "
        "order.",
        examples=[42],
    )
    bench: Bench = Field(
        default_factory=Bench,
        description="What is measured, as assets in the group NAME_bench. Default: nothing; `tfr bench` needs none of "
        "it.",
        examples=[
            {"readers": {"batch_size": 4096, "only": ["vectorized", "columnar"]}},
            {"writers": {"rows": 50_000, "workers": [1, 2, 4], "only": ["sharded_threads", "single_writer_queue"]}},
        ],
    )
    publish: Annotated[str, PlainValidator(_url, json_schema_input_type=str)] | None = Field(
        default=None,
        description="URL of a folder in an object store, to which every refresh copies what readers need: shards, "
        "merged files and what describes them. It needs `pip install 'tfr-assets[s3]'`.",
        examples=["s3://bucket/my_data", "gs://bucket/my_data"],
    )
    deps: Annotated[
        list[Annotated[dg.AssetKey, PlainValidator(_asset_key, json_schema_input_type=str)]],
        Expect("a list of texts, such as [my_group/my_files]", deep=False),
    ] = Field(
        default_factory=list,
        description="Assets that make the raw data, by key: `raw` depends on them, and a refresh materializes them "
        "first.",
        examples=[["samples/digits"]],
    )
    schedule: Annotated[str, PlainValidator(_cron, json_schema_input_type=str)] | None = Field(
        default=None,
        description="When the dataset is refreshed: a cron expression, in UTC. It runs as soon as the daemon does.",
        examples=["0 6 * * *", "@daily"],
    )
    watch: Annotated[int, Whole(_SOONEST, example="60", of=" of seconds")] | None = Field(
        default=None,
        description="Seconds between two looks at the raw files, which read none of them. After a change, a refresh "
        "runs.",
        examples=[60],
    )
    automation: Annotated[str, OneOf((ON_CHANGE,)), Expect(f"{ON_CHANGE}")] | None = Field(
        default=None,
        description="`on_change`: shards and merged are materialized by themselves when what they are made from has "
        "changed.",
        examples=[ON_CHANGE],
    )
    freshness: Annotated[timedelta, PlainValidator(_hours, json_schema_input_type=float)] | None = Field(
        default=None,
        description="Hours after which the merged file is late, which its health in the UI then shows.",
        examples=[26],
    )
    description: Annotated[str, Expect("text", remedy="Put it in quotes")] = Field(
        default="",
        description="What the data is; shown with each asset.",
        examples=["All flights out of New York, 2013."],
    )
    translation: Annotated[Mapping[str, Any] | None, PlainValidator(_translation, json_schema_input_type=dict)] = Field(
        default=None,
        description="What is changed of each asset in Dagster's catalog: group, tags, kinds, owners, description, "
        "metadata, automation condition; of `raw` also what it comes after. In templates, `spec` is the asset.",
        examples=[{"group_name": "lake", "tags": {"part": "{{ spec.key.path[-1] }}"}}],
    )
    owners: Annotated[
        list[Annotated[str, PlainValidator(_owner, json_schema_input_type=str)]],
        Expect("a list of texts, such as [me@example.com, 'team:data']", deep=False),
    ] = Field(
        default_factory=list,
        description="E-mail addresses and teams, the latter as `team:name`.",
        examples=[["me@example.com", "team:data"]],
    )
    tags: Annotated[dict[str, str], PlainValidator(_tags, json_schema_input_type=dict[str, Any])] = Field(
        default_factory=dict, description="Keys and values to filter assets by.", examples=[{"domain": "travel"}]
    )
