"""Groups of options check and describe themselves, in YAML and in Python alike."""

import importlib.util
import pickle
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import Field, TypeAdapter

from tests.documents import ROOT
from tfr_assets.errors import ConfigError
from tfr_assets.option_groups import Expect, Flag, OneOf, Shorthand, Text, Whole, options, problem_at, validate


@options("wheel")
class Wheel:
    """A wheel of a vehicle.

    Attributes:
        size: In inches, the
            tyre left out.
        kind: What it is for.
    """

    size: Annotated[int, Whole(1, 40, example="17")]
    kind: Annotated[str, OneOf(("summer", "winter"))] = "summer"


@options("vehicle", {"colour": "is called `paint` here"})
class Vehicle:
    """A vehicle.

    Attributes:
        name: What it is called.
        wheels: Its wheels.
        spare: One more wheel, or its size.
        new: Whether it is new.
    """

    name: Text
    wheels: Annotated[tuple[Wheel, ...], Expect("a list of wheels", deep=False)] = ()
    spare: Annotated[Wheel, Shorthand("size", "17", int, lambda value: isinstance(value, int))] | None = None
    new: Flag = Field(default=False, examples=[True])

    def __post_init__(self) -> None:
        """Checks what goes together."""
        if self.new and self.name == "old":
            raise problem_at(("new",), "is not old")


def complaint(value: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        validate(Vehicle, value, "fleet.car")
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (3, "fleet.car: expected a mapping with name, wheels, spare or new; found 3"),
        ({}, "fleet.car.name: missing. It takes name, wheels, spare, new"),
        ({"name": ""}, "fleet.car.name: expected text; found ''"),
        ({"name": "x", "nwe": True}, "fleet.car.nwe: not a setting (did you mean 'new'?). Known are name, wheels"),
        ({"name": "x", "colour": "red"}, "fleet.car.colour: is called `paint` here"),
        ({"name": "x", "spare": None}, "fleet.car.spare: has no value; give it one, or leave it out"),
        ({"name": "x", "wheels": [{"size": 9, "kind": ["summer"]}]}, "wheels[0].kind: ['summer'] is not known"),
        ({"name": "x", "new": 1}, "fleet.car.new: expected true or false; found 1"),
        ({"name": "old", "new": True}, "fleet.car.new: is not old"),
        ({"name": "x", "wheels": 3}, "fleet.car.wheels: expected a list of wheels; found 3"),
        ({"name": "x", "wheels": [{"size": 17}, {}]}, "fleet.car.wheels[1].size: missing. It takes size, kind"),
        ({"name": "x", "wheels": [{"size": 0}]}, "wheels[0].size: expected a whole number from 1 to 40, such as 17"),
        (
            {"name": "x", "wheels": [{"size": 9, "kind": "sumer"}]},
            "fleet.car.wheels[0].kind: 'sumer' is not known (did you mean 'summer'?). Choose one of: summer, winter",
        ),
        ({"name": "x", "spare": 99}, "fleet.car.spare: expected a whole number from 1 to 40"),
        ({"name": "x", "spare": "big"}, "fleet.car.spare: expected 17, or a mapping with size or kind; found 'big'"),
        ({"name": "x", "spare": {"size": 99}}, "fleet.car.spare.size: expected a whole number"),
    ],
)
def test_a_mistake_is_told_with_its_path_and_the_remedy(value: Any, says: str) -> None:
    assert says in complaint(value)


def test_all_mistakes_are_told_at_once() -> None:
    said = complaint({"wheels": [{"size": 0}, {"size": 9, "kind": 1}], "new": "no", "nam": 1, "colour": "red"})
    for field in (
        "car.nam: not a setting",
        "car.colour: is called",
        "fleet.car.name: missing",
        "wheels[0].size: ",
        "wheels[1].kind: ",
        "fleet.car.new: ",
    ):
        assert field in said


def test_python_and_yaml_make_the_same_object() -> None:
    made = validate(Vehicle, {"name": "x", "wheels": [{"size": 9}], "spare": 3}, "car")
    assert made == Vehicle("x", (Wheel(9),), Wheel(size=3))
    assert pickle.loads(pickle.dumps(made)) == made
    assert replace(made, new=True).new
    assert asdict(made)["wheels"] == ({"size": 9, "kind": "summer"},)


def test_a_wrong_argument_in_python_is_a_config_error() -> None:
    for make in (lambda: Wheel(0), lambda: Wheel("9"), lambda: replace(Wheel(9), size=99)):  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"^wheel\.size: expected a whole number from 1 to 40"):
            make()
    with pytest.raises(ConfigError, match=r"^wheel\.sise: not a setting \(did you mean 'size'\?\)"):
        Wheel(sise=9)  # type: ignore[call-arg]


def test_the_docstring_describes_the_schema() -> None:
    schema = TypeAdapter(Vehicle).json_schema()
    assert schema["description"] == "A vehicle."
    assert schema["properties"]["new"]["description"] == "Whether it is new."
    wheel = schema["$defs"]["Wheel"]
    assert wheel["properties"]["size"]["description"] == "In inches, the tyre left out."
    assert (wheel["properties"]["size"]["minimum"], wheel["properties"]["size"]["maximum"]) == (1, 40)
    assert wheel["properties"]["kind"]["enum"] == ["summer", "winter"]


def _groups() -> Iterator[tuple[str, dict[str, Any]]]:
    from tfr_assets import TFRecordDataset

    yield from TFRecordDataset.model().model_json_schema()["$defs"].items()


def test_every_option_of_a_dataset_is_described() -> None:
    names = {name for name, _ in _groups()}
    assert {"FeatureOptions", "Splits", "BenchOptions", "WriterTrials", "ImageOptions", "AudioOptions"} <= names
    for name, group in _groups():
        assert group["description"], name
        for option, about in group["properties"].items():
            assert about.get("description"), f"{name}.{option}"


def test_the_reference_lists_every_option() -> None:
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "reference" / "hooks.py")
    assert spec and spec.loader
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = hooks.on_page_markdown(Path(ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8"))
    for field in ("source", "shards", "bench", "tags"):
        assert f"## `{field}`" in page
    for path in ("source.images", "source.audio", "source.text", "source.mixed.parts", "features", "bench.readers"):
        assert f"### `{path}`: " in page
    for name, group in _groups():
        for option in group["properties"]:
            assert f"| `{option}` |" in page, f"{name}.{option}"


@pytest.mark.parametrize(
    "attributes",
    [
        {"shards": "{{ 2 }}", "watch": "{{ 60 }}", "compression": "{{ env.HOW }}"},
        {"source": {"images": {"path": "{{ env.PHOTOS }}", "size": "{{ 224 }}", "labels": "{{ 'none' }}"}}},
        {"source": {"mixed": {"parts": ["a.csv", {"text": {"path": "b/", "max_length": "{{ 3 }}"}}]}}},
        {"bench": {"readers": {"batch_size": "{{ 3 }}", "only": ["{{ env.READER }}"]}}},
        {"features": {"names": {"a": {1: "cat"}, "b": ["x"]}, "shape": {"c": ["{{ 2 }}", 2]}, "fill": {"d": 0.5}}},
        {"splits": {"train": "{{ 0.5 }}", "test": 0.5}},
        {"splits": {"column": "part", "values": ["a", "b"]}},
    ],
    ids=str,
)
def test_what_dg_checks_yaml_by_takes_templates(attributes: dict[str, Any]) -> None:
    assert not _refused({"source": "x"} | attributes)


def test_what_dg_checks_yaml_by_takes_what_loads_and_refuses_what_does_not() -> None:
    from tfr_assets.components.config.fields import DatasetOptions

    for name, field in DatasetOptions.model_fields.items():
        for example in field.examples or ():
            assert not _refused({"source": "x"} | {name: example}), name
    for path in sorted((ROOT / "tfr_assets" / "defs").rglob("defs.yaml")):
        assert not _refused(yaml.safe_load(path.read_text("utf-8"))["attributes"]), path
    for wrong in (
        {"shard": 1},
        {"shards": 1.5},
        {"shards": 0},
        {"source": {"images": {"path": "x", "sise": 1}}},
        {"watch": 3},
    ):
        assert _refused({"source": "x"} | wrong), wrong


def _refused(attributes: dict[str, Any]) -> list[str]:
    from tfr_assets import TFRecordDataset

    validator = Draft202012Validator(TFRecordDataset.model().model_json_schema())
    return [error.message for error in validator.iter_errors(attributes)]


_WORDS = st.sampled_from(
    ["path", "images", "audio", "text", "mixed", "parts", "table", "options", "labels", "column", "size"]
)
_KEYS = st.one_of(_WORDS, st.text(max_size=3), st.integers(), st.none(), st.just("\ud800"))
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.dates(), st.just("\ud800")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["source", "shards", "splits", "features", "bench", "owners", "tags", "deps", "watch"]), _VALUES)
def test_whatever_yaml_holds_is_an_error_of_ours_or_loads(field: str, value: Any) -> None:
    from tfr_assets import TFRecordDataset

    try:
        validate(TFRecordDataset, {"source": "x"} | {field: value}, "")
    except ConfigError as error:
        assert field in str(error)
        str(error).encode("utf-8")
