"""What may stand in a dataset's YAML: one parser a field, from what YAML gives to what the project works with.

Every message begins with the field's name, says what was found, and what to write instead. Owners, tags and cron
expressions are put to Dagster itself, so that the two never disagree.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.bench.writers.measured import MEASURED
from tfr_assets.bench.writers.options import WriterTrials
from tfr_assets.components.assets.bench import Bench
from tfr_assets.errors import ConfigError
from tfr_assets.records.frames.compression import COMPRESSIONS
from tfr_assets.records.schema.features import FeatureOptions
from tfr_assets.sources import parse_source, parse_splits
from tfr_assets.sources.model.options import did_you_mean
from tfr_assets.writing.dataset import MAX_SHARDS

ON_CHANGE = "on_change"
_SOONEST = 10  # seconds between two looks at the raw files; listing many takes a while
_LONGEST_HOURS = 24 * 366
_MOST_CLASSES = 1_000_000


class SourceField(dg.Model):
    """The long form of `source`."""

    path: str | None = Field(
        None,
        description="A file, a folder, a glob, or an fsspec URL of these. Relative paths start at the project's root.",
        examples=["raw/*.parquet", "s3://bucket/table/"],
    )
    callable: str | None = Field(
        None,
        description="Instead of `path`: `package.module:function`, a function without arguments that returns or yields "
        "Arrow tables or batches, pandas DataFrames, or dicts (one a row).",
        examples=["my_package.my_module:my_rows"],
    )
    format: str | None = Field(
        None,
        description="`parquet`, `csv`, `jsonl` or `arrow`. Default: by the files' endings.",
        examples=["csv"],
    )
    options: dict[str, Any] = Field(
        {},
        description="How text is read. csv: delimiter, quote_char, column_names, skip_rows, encoding, null_values, "
        "column_types; jsonl: column_types.",
        examples=[{"delimiter": ";", "null_values": ["", "NA"]}],
    )
    columns: str = Field(
        "same",
        description="Of tables in several files: `same`, all must have the same columns; or `union`, a file may lack "
        "some, which are null there.",
        examples=["union"],
    )
    follow_links: bool = Field(
        False,
        description="Of tables on a local disk: whether links are followed that lead out of the folder.",
        examples=[True],
    )
    storage_options: dict[str, Any] = Field(
        {},
        description="Passed to fsspec, for a URL that needs it. Leave credentials to the environment: a run keeps its "
        "settings in the instance's storage.",
        examples=[{"anon": True}],
    )
    images: str | dict[str, Any] | None = Field(
        None,
        description="Instead of a table: photographs. A folder by class, or a mapping with `path` and labels, classes, "
        "on_error, follow_links, column, size, format, quality, max_pixels.",
        examples=["photos/", {"path": "photos/", "labels": {"table": "labels.csv", "file": "name", "label": "class"}}],
    )
    audio: str | dict[str, Any] | None = Field(
        None,
        description="Instead of a table: recordings. A folder by class, or a mapping with `path` and labels, classes, "
        "on_error, follow_links, samples, rate, mono.",
        examples=[{"path": "recordings/", "labels": {"pattern": "(?P<label>[0-9])_.*"}, "samples": "float32"}],
    )
    text: str | dict[str, Any] | None = Field(
        None,
        description="Texts: documents (one a file), lines, or a column of a table; a folder, or a mapping with `path` "
        "and per, column, encoding, labels, classes, on_error, follow_links, max_length, tokenizer.",
        examples=["corpus/", {"path": "reviews.csv", "column": "review", "labels": {"column": "stars"}}],
    )
    mixed: dict[str, Any] | None = Field(
        None,
        description="Several of these, joined by key into one record: `parts`, `key` and `missing`.",
        examples=[{"key": "id", "parts": [{"images": "photos/"}, {"text": "captions/"}, {"table": "facts.csv"}]}],
    )


class SplitsField(dg.Model):
    """The long form of `splits`."""

    fractions: dict[str, float] | None = Field(
        None, description="Share of each split, by a hash of `key`.", examples=[{"train": 0.8, "test": 0.2}]
    )
    key: str | None = Field(
        None,
        description="The column that is hashed. Default: a file's name where records are files, otherwise all columns.",
        examples=["user_id"],
    )
    column: str | None = Field(None, description="The column that names the split of a row.", examples=["part"])
    values: list[str] | None = Field(
        None, description="The values of `column`: each is a split.", examples=[["train", "test"]]
    )
    folder: list[str] | None = Field(
        None, description="Names of the folders, first below the path, that are splits.", examples=[["train", "test"]]
    )


class FeaturesField(dg.Model):
    """What to do with which column. Columns that are not named are kept as they are."""

    drop: list[str] = Field([], description="Columns to leave out.", examples=[["id", "comment"]])
    rename: dict[str, str] = Field({}, description="New feature names by column.", examples=[{"dep_delay": "delay"}])
    cast: dict[str, str] = Field(
        {},
        description="Arrow types by column. A value that does not survive the cast is an error.",
        examples=[{"price": "float32"}],
    )
    shape: dict[str, list[int]] = Field(
        {},
        description="Fixed shapes by list column: every row must have exactly that many values.",
        examples=[{"pixels": [28, 28]}],
    )
    fill: dict[str, int | float | str] = Field(
        {}, description="What readers put where a column is null.", examples=[{"arr_delay": 0.0}]
    )
    tensor: dict[str, str] = Field(
        {},
        description="How columns of lists or arrays are stored: `packed` (their values) or `serialized` (as by "
        "tf.io.serialize_tensor).",
        examples=[{"embedding": "serialized"}],
    )
    sequence: list[str] = Field(
        [],
        description="List columns that become feature lists: records are tf.SequenceExamples then.",
        examples=[["frames"]],
    )
    names: dict[str, list[str] | dict[int, str]] = Field(
        {},
        description="Names of classes by integer column: that of 0 first, or each with its number. A number that has "
        "no name is named by itself.",
        examples=[{"label": ["cat", "dog"], "stars": {1: "bad", 5: "good"}}],
    )


class ReadersField(dg.Model):
    """How the readers are measured."""

    batch_size: int = Field(1024, description="Records a batch.", examples=[4096])
    epochs: int = Field(
        2, description="Passes in one process: the first with a cold page cache, the others warm.", examples=[3]
    )
    repeats: int = Field(3, description="Processes a reader, in turn with the others.", examples=[5])
    only: list[str] = Field(
        [], description="Names of the readers. Default: all.", examples=[["vectorized", "columnar"]]
    )
    step_ms: float = Field(0, description="Simulated training step after each batch, in milliseconds.", examples=[10])
    decode_ms: float = Field(0, description="Simulated cost of decoding a record, in milliseconds.", examples=[0.1])


class WritersField(dg.Model):
    """How the writers are measured."""

    rows: int | None = Field(
        None, description="Most rows that are written, the first ones. Default: about a minute's.", examples=[50_000]
    )
    workers: list[int] = Field(
        [],
        description="Numbers of workers to measure with. Default: 1, 2, 4 and so on, up to one a processor.",
        examples=[[1, 2, 4, 8]],
    )
    repeats: int = Field(3, description="Number of timed writes.", examples=[5])
    only: list[str] = Field(
        list(MEASURED), description="Names of the writers.", examples=[["sharded_threads", "single_writer_queue"]]
    )


class BenchField(dg.Model):
    """What is measured. What is named here, if only as `{}`, has assets in the group NAME_bench."""

    readers: ReadersField | None = Field(
        None, description="How the readers are measured.", examples=[{"batch_size": 4096, "only": ["vectorized"]}]
    )
    writers: WritersField | None = Field(
        None, description="How the writers are measured.", examples=[{"rows": 50_000, "workers": [1, 2, 4]}]
    )


def parse_shards(value: Any) -> int | dict[str, int] | None:
    """Returns the number of shards, of every split or by split; None for `auto`."""
    if value == "auto":
        return None
    if isinstance(value, Mapping):
        return {str(split): _shard_count(f"shards.{split}", count) for split, count in value.items()}
    return _shard_count("shards", value)


def _shard_count(field: str, value: Any) -> int:
    if not _is_whole(value) or not 1 <= value <= MAX_SHARDS:
        raise ConfigError(
            f"{field}: expected a whole number from 1 to {MAX_SHARDS}, such as 16, or shards: auto; found {value!r}"
        )
    return int(value)


def parse_compression(value: Any) -> str:
    """Returns the name of a compression."""
    if value not in COMPRESSIONS:
        raise ConfigError(
            f"compression: {value!r} is not known{did_you_mean(value, COMPRESSIONS)}. Choose {_either(COMPRESSIONS)}"
        )
    return str(value)


def parse_features(value: Any) -> FeatureOptions:
    """Returns what to do with which column."""
    fields = _mapping("features", value, "a mapping with drop, rename, cast, shape, fill, tensor, sequence or names")
    _refuse_unknown("features", fields, FeaturesField.model_fields)
    shapes = _by_column("shape", fields, _is_shape, "a list of sizes such as [28, 28]")
    tensors = _by_column("tensor", fields, lambda how: how in ("packed", "serialized"), "packed or serialized")
    names = _by_column("names", fields, _are_names, "names such as [cat, dog], or {1: cat, 2: dog} with their numbers")
    return FeatureOptions(
        drop=tuple(_texts("features.drop", fields.get("drop", []), "such as [id, comment]")),
        rename=_by_column("rename", fields, lambda new: isinstance(new, str), "a new name"),
        cast=_by_column("cast", fields, lambda type_: isinstance(type_, str), "an Arrow type such as float32"),
        shape={column: tuple(shape) for column, shape in shapes.items()},
        tensor=tensors,
        sequence=tuple(_texts("features.sequence", fields.get("sequence", []), "such as [frames]")),
        names={column: _class_names(of_column) for column, of_column in names.items()},
        fill=_by_column("fill", fields, lambda fill: isinstance(fill, int | float | str), "a number or text"),
    )


def parse_bench(value: Any) -> Bench:
    """Returns what is measured."""
    fields = _mapping("bench", value, "a mapping with readers, writers or both, such as {readers: {}}")
    _refuse_unknown("bench", fields, BenchField.model_fields)
    try:
        return Bench(
            readers=parse_readers(fields["readers"]) if "readers" in fields else None,
            writers=parse_writers(fields["writers"]) if "writers" in fields else None,
        )
    except ConfigError as error:
        raise ConfigError(f"bench.{error}") from error


def parse_readers(value: Any) -> BenchOptions:
    """Returns how the readers are measured."""
    fields = _mapping("readers", value, "a mapping with batch_size, epochs, repeats, only, step_ms or decode_ms")
    _refuse_unknown("readers", fields, ReadersField.model_fields)
    if "only" in fields:
        fields["only"] = tuple(_texts("readers.only", fields["only"], "such as [vectorized, columnar]"))
    return BenchOptions(**fields)


def parse_writers(value: Any) -> WriterTrials:
    """Returns how the writers are measured."""
    fields = _mapping("writers", value, "a mapping with rows, workers, repeats or only")
    _refuse_unknown("writers", fields, WritersField.model_fields)
    workers = fields.get("workers", [])
    if not isinstance(workers, list | tuple):
        raise ConfigError(f"writers.workers: expected a list of whole numbers, such as [1, 2, 4]; found {workers!r}")
    return WriterTrials(
        rows=fields.get("rows"),
        workers=tuple(workers),
        repeats=fields.get("repeats", 3),
        only=tuple(_texts("writers.only", fields.get("only", list(MEASURED)), "such as [sharded_threads, locked]")),
    )


def parse_shuffle(value: Any) -> int:
    """Returns the seed of the shuffle."""
    if not _is_whole(value) or value < 0:
        raise ConfigError(
            f"shuffle: expected a seed, a whole number from 0 up such as 42, found {value!r}; "
            "leave the line out to keep the rows in order"
        )
    return int(value)


def parse_deps(value: Any) -> list[dg.AssetKey]:
    """Returns the keys of the assets that come before the raw data."""
    texts = _texts("deps", value, "such as [my_group/my_files]")
    if wrong := [text for text in texts if not all(text.split("/"))]:
        raise ConfigError(f"deps: {wrong[0]!r} is not an asset's key; write its parts with '/' between them")
    return [dg.AssetKey(text.split("/")) for text in texts]


def parse_schedule(value: Any) -> str:
    """Returns a cron expression."""
    try:
        dg.ScheduleDefinition(name="check", job_name="check", cron_schedule=str(value))
    except dg.DagsterError as error:
        raise ConfigError(
            f"schedule: {value!r} is not a cron expression. Write minute, hour, day of month, month and day of week, "
            "such as '0 6 * * *' for every day at 06:00"
        ) from error
    return str(value)


def parse_watch(value: Any) -> int:
    """Returns how often the raw files are looked at, in seconds."""
    if not _is_whole(value) or value < _SOONEST:
        raise ConfigError(f"watch: expected a whole number of seconds from {_SOONEST} up, such as 60; found {value!r}")
    return int(value)


def parse_automation(value: Any) -> str:
    """Returns when assets follow those that they are made from."""
    if value != ON_CHANGE:
        raise ConfigError(f"automation: expected {ON_CHANGE}; found {value!r}. Leave the line out for none")
    return ON_CHANGE


def parse_freshness(value: Any) -> timedelta:
    """Returns after which time data is late."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 / 60 <= value <= _LONGEST_HOURS:
        raise ConfigError(f"freshness: expected a number of hours, at least a minute, such as 26; found {value!r}")
    return timedelta(hours=value)


def parse_description(value: Any) -> str:
    """Returns the description."""
    if not isinstance(value, str):
        raise ConfigError(f"description: expected text, found {value!r}; put it in quotes")
    return value


def parse_owners(value: Any) -> list[str]:
    """Returns the owners: e-mail addresses and teams."""
    for owner in (owners := _texts("owners", value, "such as [me@example.com, 'team:data']")):
        try:
            dg.AssetSpec("check", owners=[owner])
        except dg.DagsterError as error:
            raise ConfigError(
                f"owners: {owner!r} is neither an e-mail address nor a team, which is written 'team:name'"
            ) from error
    return owners


def parse_tags(value: Any) -> dict[str, str]:
    """Returns the tags; numbers and truth values become text, as YAML writes many a text without quotes."""
    tags = {}
    for key, tag in _mapping("tags", value, "keys with values, such as {domain: travel}").items():
        text = str(tag).lower() if isinstance(tag, bool) else str(tag)
        try:
            dg.AssetSpec("check", tags={key: text})
        except dg.DagsterError as error:
            raise ConfigError(
                f"tags.{key}: {tag!r} cannot be a tag. Use up to 63 letters, digits, '_', '-' and '.' for key and value"
            ) from error
        tags[key] = text
    return tags


PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "source": parse_source,
    "shards": parse_shards,
    "splits": parse_splits,
    "compression": parse_compression,
    "features": parse_features,
    "shuffle": parse_shuffle,
    "bench": parse_bench,
    "deps": parse_deps,
    "schedule": parse_schedule,
    "watch": parse_watch,
    "automation": parse_automation,
    "freshness": parse_freshness,
    "description": parse_description,
    "owners": parse_owners,
    "tags": parse_tags,
}


_MOVED = {"readers": "bench: {readers: …}", "writers": "bench: {writers: …}"}


def unknown_key(where: str, key: object, known: Iterable[str]) -> str:
    """Returns what is said of a key that nothing knows."""
    if where in _MOVED:
        return f"{where}: stands below `bench` now; write {_MOVED[where]}"
    known = list(known)
    return f"{where}: not a setting{did_you_mean(key, known)}. Known are {', '.join(known)}"


def _refuse_unknown(field: str, found: Mapping[str, Any], known: Iterable[str]) -> None:
    known = list(known)
    for key in found:
        if key not in known:
            raise ConfigError(unknown_key(f"{field}.{key}", key, known))


def _mapping(field: str, value: Any, expected: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{field}: expected {expected}; found {value!r}")
    return {str(key): item for key, item in value.items()}


def _by_column(name: str, fields: Mapping[str, Any], fits: Callable[[Any], bool], expected: str) -> dict[str, Any]:
    field = f"features.{name}"
    by_column = _mapping(field, fields.get(name, {}), f"columns, each with {expected}")
    for column, value in by_column.items():
        if not fits(value):
            raise ConfigError(f"{field}.{column}: expected {expected}; found {value!r}")
    return by_column


def _texts(field: str, value: Any, example: str) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{field}: expected a list of texts, {example}; found {value!r}")
    return list(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_shape(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(_is_whole(size) and size > 0 for size in value)


def _are_names(value: Any) -> bool:
    if isinstance(value, Mapping):
        if not all(_is_whole(number) and 0 <= number <= _MOST_CLASSES for number in value):
            return False
        value = list(value.values())
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(name, str) for name in value)


def _class_names(value: Sequence[str] | Mapping[int, str]) -> tuple[str, ...]:
    """Returns the name of each class, from 0 on."""
    if isinstance(value, Mapping):
        return tuple(value.get(number, str(number)) for number in range(max(value) + 1))
    return tuple(value)


def _either(choices: Iterable[str]) -> str:
    *first, last = choices
    return f"{', '.join(first)} or {last}"
