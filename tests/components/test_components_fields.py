"""What is said of a YAML that cannot work: every mistake at once, with line, field and remedy."""

import re
from pathlib import Path
from typing import Any

import pytest
from dagster.components.testing import create_defs_folder_sandbox

from tfr_assets.components.config.component import TFRecordDataset
from tfr_assets.components.config.fields import DatasetOptions
from tfr_assets.errors import ConfigError
from tfr_assets.option_groups import validate
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.sources import Source, seen_from


def complaint(attributes: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as caught:
        TFRecordDataset.from_attributes_dict(attributes={"source": "raw.parquet"} | attributes)
    return str(caught.value)


def complaint_of_file(text: str, name: str = "wrong") -> str:
    """Returns what is said of a YAML file when a project's definitions are loaded."""
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.defs_folder_path / name
        folder.mkdir()
        (folder / "defs.yaml").write_text(text)
        with pytest.raises(Exception) as caught, sandbox.build_all_defs():
            pass
    error: BaseException = caught.value
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"shards": 0}, "shards: expected a whole number from 1 to 99999, such as 16, or shards: auto; found 0"),
        ({"shards": "twelve"}, "shards: expected a whole number"),
        ({"shards": 1.5}, "found 1.5"),
        ({"shards": None}, "shards: has no value; give it one, or remove the line"),
        ({"shard": 3}, "shard: not a setting (did you mean 'shards'?). Known are source, shards"),
        ({"colour": "red"}, "colour: not a setting. Known are"),
        (
            {"compression": "gzp"},
            "compression: 'gzp' is not known (did you mean 'gzip'?). Choose one of: none, gzip, zlib",
        ),
        ({"compression": ["gzip"]}, "compression: ['gzip'] is not known (did you mean 'gzip'?)"),
        ({"bench": {"readers": None}}, "bench.readers: has no value; give it one, or leave it out"),
        ({"source": {"images": None, "path": "p/"}}, "source.images: has no value"),
        ({"source": {"mixed": {"parts": [{"images": None}, "b.csv"]}}}, "source.mixed.parts[0].images: has no value"),
        (
            {"source": {"mixed": {"parts": ["b.csv"]}}},
            "source.mixed.parts: expected a list of two or more sources; found ['b.csv']",
        ),
        ({"source": {"images": "p/", "path": "same"}}, "source.path: beside `images` nothing else is allowed"),
        ({"splits": {True: 1.0}}, "the name True is not text; put it in quotes"),
        ({"compression": 3}, "Choose one of: none, gzip, zlib"),
        ({"schedule": "every day"}, "schedule: 'every day' is not a cron expression. Write minute, hour"),
        ({"schedule": "0 25 * * *"}, "schedule: '0 25 * * *' is not a cron expression"),
        ({"schedule": 5}, "schedule: 5 is not a cron expression"),
        ({"shuffle": True}, "shuffle: expected a seed, a whole number from 0 up such as 42; found True"),
        ({"shuffle": -1}, "shuffle: expected a seed"),
        ({"owners": ["somebody"]}, "owners[0]: 'somebody' is neither an e-mail address nor a team"),
        ({"owners": "me@example.com"}, "owners: expected a list of texts, such as [me@example.com, 'team:data']"),
        ({"tags": {"a b": "c"}}, "tags.a b: 'c' cannot be a tag. Use up to 63 letters"),
        ({"tags": {"a": "c d"}}, "tags.a: 'c d' cannot be a tag"),
        ({"tags": ["a"]}, "tags: expected keys with values"),
        ({"description": 3}, "description: expected text; found 3. Put it in quotes"),
        ({"source": 3}, "source: expected a path such as 'raw/*.parquet', or a mapping"),
        ({"source": {"pth": "x"}}, "source.pth: not a setting (did you mean 'path'?)"),
        ({"source": {}}, "source: set exactly one of `path` and `callable`"),
        ({"source": {"path": 3}}, "source.path: expected text; found 3"),
        ({"source": {"callable": "module"}}, "source.callable: 'module' is not of the form `package.module:function`"),
        ({"source": {"path": "x", "format": "xls"}}, "source.format: 'xls' is not known. Choose one of: parquet"),
        (
            {"source": {"path": "x.csv", "options": {"delimter": ";"}}},
            "source.options.delimter: not a setting (did you",
        ),
        (
            {"features": ["a"]},
            "features: expected a mapping with drop, rename, cast, shape, fill, tensor, sequence or names",
        ),
        ({"features": {"dorp": ["a"]}}, "features.dorp: not a setting (did you mean 'drop'?)"),
        ({"features": {"drop": "a"}}, "features.drop: expected a list of texts, such as [id, comment]; found 'a'"),
        ({"features": {"rename": {"a": 1}}}, "features.rename.a: expected a new name; found 1"),
        ({"features": {"cast": {"a": None}}}, "features.cast.a: expected an Arrow type such as float32; found None"),
        ({"features": {"shape": {"a": 28}}}, "features.shape.a: expected a list of sizes such as [28, 28]; found 28"),
        ({"features": {"shape": {"a": [0]}}}, "features.shape.a: expected a list of sizes such as [28, 28]; found [0]"),
        ({"features": {"fill": {"a": [1]}}}, "features.fill.a: expected a number or text; found [1]"),
    ],
)
def test_a_wrong_setting_is_named_with_its_remedy(attributes: dict[str, Any], says: str) -> None:
    said = complaint(attributes)
    assert says in said
    assert said.startswith("1 validation error")  # one mistake, one message


def test_a_missing_source_is_asked_for() -> None:
    with pytest.raises(ValueError, match=r"source: missing; add a line such as `source: raw/my_data\.parquet`"):
        TFRecordDataset.from_attributes_dict(attributes={"shards": 2})


def test_every_mistake_of_a_file_is_told_at_once_with_its_line() -> None:
    text = "type: tfr_assets.TFRecordDataset\nattributes:\n  source: a.parquet\n  shards: 0\n  shard: 3\n"
    said = complaint_of_file(text)
    assert "attributes.shards at " in said and "defs.yaml:4" in said
    assert "attributes.shard at " in said and "defs.yaml:5" in said


def test_a_mistake_deep_in_a_group_is_told_with_its_own_line() -> None:
    text = """type: tfr_assets.TFRecordDataset
attributes:
  source:
    images:
      path: photos/
      sise: 224
  bench:
    readers:
      repeats: 2
      batch_size: 0
  owners:
    - me@example.com
    - nobody
"""
    said = complaint_of_file(text)
    for field, line in (("source.images.sise", 6), ("bench.readers.batch_size", 10), ("owners.1", 13)):
        assert re.search(rf"attributes\.{re.escape(field)} at \S*defs\.yaml:{line}`?\n", said), field
    assert "source.images.sise: not a setting (did you mean 'size'?)" in said


def test_what_a_template_becomes_is_told_with_the_line_of_its_field() -> None:
    text = "type: tfr_assets.TFRecordDataset\nattributes:\n  source: a.parquet\n  shards: '{{ none }}'\n"
    said = complaint_of_file(text)
    assert "defs.yaml:4 - attributes.shards" in said
    assert "shards: expected a whole number from 1 to 99999, such as 16, or shards: auto; found None" in said


def test_a_name_that_no_file_can_have_is_refused() -> None:
    said = complaint_of_file("type: tfr_assets.TFRecordDataset\nattributes:\n  source: a.parquet\n", "my-data")
    assert "dataset name 'my-data': use letters, digits and underscores only" in said


def test_all_settings_arrive_as_they_were_meant() -> None:
    made = TFRecordDataset.from_attributes_dict(
        attributes={
            "source": {"path": "raw/*.csv", "options": {"delimiter": ";", "null_values": ["", "-1"]}},
            "shards": 3,
            "compression": "zlib",
            "features": {
                "drop": ["1"],
                "rename": {"a": "b"},
                "cast": {"c": "float32"},
                "shape": {"d": [2, 3]},
                "fill": {"e": 0, "f": "x"},
            },
            "shuffle": 0,
            "schedule": "@daily",
            "description": "Mine.",
            "owners": ["me@example.com", "team:data"],
            "tags": {"version": 2, "draft": True, "domain": "travel"},
        }
    )
    assert made.source == Source(path="raw/*.csv", options={"delimiter": ";", "null_values": ["", "-1"]})
    assert made.features == FeatureOptions(("1",), {"a": "b"}, {"c": "float32"}, {"d": (2, 3)}, {"e": 0, "f": "x"})
    assert (made.shards, made.compression, made.shuffle, made.schedule) == (3, "zlib", 0, "@daily")
    assert made.tags == {"version": "2", "draft": "true", "domain": "travel"}


def test_classes_are_named_in_order_or_by_their_numbers() -> None:
    for said, names in ((["a", "b"], ("a", "b")), ({1: "a", 2: "b"}, ("0", "a", "b")), ({0: "a"}, ("a",))):
        assert validate(FeatureOptions, {"names": {"x": said}}, "features").names == {"x": names}
    for wrong in ({}, [], {-1: "a"}, {True: "a"}, {"1": "a"}, {1: 2}, {10**9: "a"}, "ab"):
        with pytest.raises(ConfigError, match=r"features\.names\.x: expected names such as \[cat, dog\], or \{1: cat"):
            validate(FeatureOptions, {"names": {"x": wrong}}, "features")


def test_templates_are_filled_in_before_they_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_DATA", "/elsewhere")
    attributes = {"source": "{{ env.MY_DATA }}/x.parquet", "shards": "{{ 2 }}"}
    made = TFRecordDataset.from_attributes_dict(attributes=attributes)
    assert (made.source.path, made.shards) == ("/elsewhere/x.parquet", 2)
    deep = {"source": "x", "bench": {"readers": {"batch_size": "{{ 2 * 3 }}"}}, "watch": "{{ 60 }}"}
    made = TFRecordDataset.from_attributes_dict(attributes=deep)
    assert made.bench.readers and (made.bench.readers.batch_size, made.watch) == (6, 60)
    with pytest.raises(Exception, match=r"shards: expected a whole number from 1 to 99999, .*; found 0"):
        TFRecordDataset.from_attributes_dict(attributes={"source": "x", "shards": "{{ 0 }}"})


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("raw/x.parquet", "/project/raw/x.parquet"),
        ("/abs/x.parquet", "/abs/x.parquet"),
        ("~/x.parquet", "~/x.parquet"),
        ("s3://bucket/x/*.parquet", "s3://bucket/x/*.parquet"),
        ("../raw", "/project/../raw"),
    ],
)
def test_relative_paths_start_at_the_projects_root(given: str, found: str) -> None:
    assert seen_from(Path("/project"), Source(path=given)).path == found


def test_every_field_is_described_with_an_example() -> None:
    properties = TFRecordDataset.model().model_json_schema()["properties"]
    assert list(properties) == list(DatasetOptions.model_fields)
    for name, property_ in properties.items():
        assert property_["description"] and property_["examples"], name
        for example in property_["examples"]:
            TFRecordDataset.from_attributes_dict(attributes={"source": "x"} | {name: example})
