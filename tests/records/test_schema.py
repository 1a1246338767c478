"""From a schema and a dataset's options to the feature spec, and every reason to refuse."""

import json

import pyarrow as pa
import pytest

from tfr_assets.errors import ConfigError, SchemaError, TfrError
from tfr_assets.records.features import Feature, FeatureOptions, FeatureSpec, Kind
from tfr_assets.records.schema import derive_spec

_REMEDY = "drop it under features.drop"


def spec_of(
    schema: dict[str, pa.DataType], nulls: dict[str, int | None] | None = None, **options: object
) -> FeatureSpec:
    return derive_spec(pa.schema(list(schema.items())), nulls or {}, FeatureOptions(**options))  # type: ignore[arg-type]


def refusal(error: type[TfrError], schema: dict[str, pa.DataType], **options: object) -> str:
    with pytest.raises(error) as caught:
        spec_of(schema, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    "data_type",
    [
        pa.map_(pa.string(), pa.int32()),
        pa.dense_union([pa.field("a", pa.int8()), pa.field("b", pa.string())]),
        pa.sparse_union([pa.field("a", pa.int8())]),
        pa.list_(pa.map_(pa.string(), pa.int32())),
        pa.month_day_nano_interval(),
        pa.run_end_encoded(pa.int32(), pa.int64()),
        pa.dictionary(pa.int8(), pa.struct([("a", pa.int32())])),
    ],
    ids=str,
)
def test_a_type_that_no_feature_can_hold_is_refused_by_column_and_type(data_type: pa.DataType) -> None:
    message = refusal(SchemaError, {"fine": pa.int8(), "odd one": data_type})
    assert "'odd one'" in message and str(data_type) in message and _REMEDY in message
    inside = refusal(SchemaError, {"outer": pa.struct([("odd", data_type)])})
    assert "'outer/odd'" in inside and str(data_type) in inside


@pytest.mark.parametrize("data_type", [pa.null(), pa.list_(pa.null()), pa.struct([("x", pa.null())])], ids=str)
def test_a_column_without_any_value_asks_for_a_type(data_type: pa.DataType) -> None:
    message = refusal(SchemaError, {"x": data_type})
    assert "no value at all" in message and "features.cast" in message and "features.drop" in message


def test_dropping_the_column_is_a_remedy() -> None:
    schema = {
        "odd": pa.map_(pa.string(), pa.int32()),
        "deep": pa.struct([("odd", pa.null()), ("a", pa.int8())]),
        "b": pa.int8(),
    }
    assert [f.name for f in spec_of(schema, drop=("odd", "deep/odd")).features] == ["b", "deep/a"]


@pytest.mark.parametrize("data_type", [pa.list_(pa.int8(), 0), pa.list_(pa.list_(pa.int8(), 0), 2)], ids=str)
def test_lists_that_never_hold_a_value_are_refused(data_type: pa.DataType) -> None:
    assert "'x'" in refusal(SchemaError, {"x": data_type}) and "'x'" in refusal(SchemaError, {"x": pa.list_(data_type)})


def test_a_permuted_tensor_is_refused() -> None:
    assert "row-major" in refusal(SchemaError, {"x": pa.fixed_shape_tensor(pa.int8(), [2, 3], permutation=[1, 0])})
    straight = pa.fixed_shape_tensor(pa.int8(), [2, 3], permutation=[0, 1])
    assert spec_of({"x": straight}).features[0].shape == (2, 3)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(SchemaError, match="two columns are named 'a'"):
        derive_spec(pa.schema([("a", pa.int8()), ("b", pa.int8()), ("a", pa.string())]), {})
    assert "'a/b'" in refusal(SchemaError, {"a/b": pa.int8(), "a": pa.struct([("b", pa.int8())])})


def test_renaming_two_columns_to_one_feature_is_refused() -> None:
    both = {"a": pa.int8(), "b": pa.int8()}
    for rename in ({"a": "b"}, {"a": "c", "b": "c"}):
        message = refusal(SchemaError, both, rename=rename)
        assert "'a'" in message and "'b'" in message and "features.rename" in message
    assert [f.name for f in spec_of(both, rename={"a": "b", "b": "a"}).features] == ["a", "b"]
    assert [f.name for f in spec_of(both, rename={"a": "b"}, drop=("b",)).features] == ["b"]


@pytest.mark.parametrize("option", ["drop", "rename", "cast", "shape", "fill"])
def test_an_unknown_column_is_named_with_the_option_and_the_closest_one(option: str) -> None:
    def options(column: str) -> dict[str, object]:
        return {option: (column,) if option == "drop" else {column: "x"}}

    schema = {"temperature": pa.int8(), "wind": pa.struct([("speed", pa.int8())])}
    message = refusal(ConfigError, schema, **options("temprature"))
    assert f"features.{option}" in message and "'temprature'" in message and "did you mean 'temperature'?" in message
    assert "did you mean 'wind/speed'?" in refusal(ConfigError, schema, **options("wind/spede"))
    assert "columns are temperature, wind/speed" in refusal(ConfigError, schema, **options("zzz"))


def test_a_struct_is_dropped_with_all_its_fields() -> None:
    deep = pa.struct([("in", pa.struct([("x", pa.int8()), ("y", pa.int8())])), ("z", pa.int8())])
    schema = {"a": pa.int8(), "s": deep}
    assert [f.name for f in spec_of(schema).features] == ["a", "s/in/x", "s/in/y", "s/z"]
    assert [f.name for f in spec_of(schema, drop=("s/in",)).features] == ["a", "s/z"]
    assert [f.name for f in spec_of(schema, drop=("s",)).features] == ["a"]


def test_dropping_a_column_keeps_another_whose_name_only_looks_like_a_field_of_it() -> None:
    schema = {"a": pa.int8(), "a/b": pa.int8(), "a/c": pa.struct([("d", pa.int8())])}
    assert [f.name for f in spec_of(schema, drop=("a",)).features] == ["a/b", "a/c/d"]
    assert [f.name for f in spec_of(schema, drop=("a/b",)).features] == ["a/c/d", "a"]
    assert [f.name for f in spec_of(schema, drop=("a/c",)).features] == ["a/b", "a"]


def test_dropping_everything_is_refused() -> None:
    assert "features.drop leaves no column" in refusal(ConfigError, {"a": pa.int8()}, drop=("a",))


def test_a_feature_without_a_name_is_refused() -> None:
    assert "'a'" in refusal(ConfigError, {"a": pa.int8()}, rename={"a": ""})
    assert "without a name" in refusal(ConfigError, {"": pa.int8()})
    assert spec_of({"": pa.int8()}, rename={"": "index"}).features[0].name == "index"


def test_a_cast_to_no_type_is_refused() -> None:
    assert "'flaot32' is no Arrow type" in refusal(ConfigError, {"a": pa.int8()}, cast={"a": "flaot32"})


def test_a_cast_decides_over_the_kind() -> None:
    schema = {"a": pa.string(), "b": pa.list_(pa.decimal128(5, 2)), "c": pa.null(), "d": pa.int8()}
    spec = spec_of(schema, cast={"a": "float32", "b": "float64", "c": "int16", "d": "string"})
    assert [(f.kind, f.shape, f.arrow_type) for f in spec.features] == [
        (Kind.FLOAT32, (), "float"),
        (Kind.FLOAT32, (None,), "list<item: double>"),
        (Kind.INT64, (), "int16"),
        (Kind.BYTES, (), "string"),
    ]


@pytest.mark.parametrize(
    ("data_type", "good", "bad"),
    [
        (pa.int8(), [0, -1, 2**63 - 1, -(2**63)], [2**63, 1.0, "1", True]),
        (pa.date32(), [0], ["1970-01-01"]),
        (pa.float64(), [0, 1.5, float("nan")], ["1", False]),
        (pa.string(), ["", "x"], [1, 1.5, True, b"x"]),
        (pa.list_(pa.int8(), 2), [0], ["x"]),
    ],
    ids=str,
)
def test_a_fill_must_be_of_the_features_kind(data_type: pa.DataType, good: list[object], bad: list[object]) -> None:
    for value in good:
        assert spec_of({"x": data_type}, fill={"x": value}).features[0].fill is value
    for value in bad:
        message = refusal(ConfigError, {"x": data_type}, fill={"x": value})
        assert "features.fill" in message and repr(value) in message and "'x'" in message


def test_a_list_of_varying_length_takes_no_fill_unless_a_shape_fixes_it() -> None:
    assert "features.fill" in refusal(ConfigError, {"x": pa.list_(pa.int8())}, fill={"x": 0})
    assert spec_of({"x": pa.list_(pa.int8())}, fill={"x": 0}, shape={"x": (2,)}).features[0].fill == 0


@pytest.mark.parametrize(
    ("data_type", "shape"),
    [
        (pa.int8(), (2,)),
        (pa.string(), (1,)),
        (pa.list_(pa.int8()), ()),
        (pa.list_(pa.int8()), (0,)),
        (pa.list_(pa.int8()), (2, -1)),
        (pa.list_(pa.int8(), 4), (3,)),
        (pa.list_(pa.int8(), 4), (2, 3)),
        (pa.list_(pa.list_(pa.int8(), 3)), (4,)),
    ],
    ids=str,
)
def test_a_shape_that_cannot_be_is_refused(data_type: pa.DataType, shape: tuple[int, ...]) -> None:
    message = refusal(ConfigError, {"x": data_type}, shape={"x": shape})
    assert "features.shape" in message and "'x'" in message


@pytest.mark.parametrize(
    ("data_type", "shape"),
    [
        (pa.list_(pa.int8()), (2, 3)),
        (pa.list_(pa.int8(), 6), (2, 3)),
        (pa.large_list(pa.list_(pa.int8(), 3)), (2, 3)),
        (pa.list_(pa.list_(pa.int8(), 3), 2), (6,)),
        (pa.list_view(pa.int8()), [4]),
    ],
    ids=str,
)
def test_a_shape_is_given_to_a_list(data_type: pa.DataType, shape: tuple[int, ...]) -> None:
    assert spec_of({"x": data_type}, shape={"x": shape}).features[0].shape == tuple(shape)


def test_only_columns_whose_nulls_were_counted_as_none_are_required() -> None:
    schema = {name: pa.int8() for name in "abcd"}
    spec = spec_of(schema, {"a": 0, "b": 1, "c": None})
    assert [(f.name, f.optional) for f in spec.features] == [("a", False), ("b", True), ("c", True), ("d", True)]


def test_a_spec_survives_json_and_keeps_its_fingerprint() -> None:
    schema = {"a": pa.list_(pa.list_(pa.float32(), 2)), "é": pa.string(), "t": pa.timestamp("ns", "UTC")}
    spec = spec_of(schema, {"a": 0}, fill={"é": "?"}, rename={"t": "time"})
    again = FeatureSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec
    assert again.fingerprint == spec.fingerprint
    assert again.features[0] == Feature(
        "a", Kind.FLOAT32, (None, 2), "a", "list<item: fixed_size_list<item: float>[2]>", False
    )


def test_every_field_of_a_spec_counts_for_its_fingerprint() -> None:
    base = {"a": pa.list_(pa.int8()), "b": pa.int8()}
    specs = [
        spec_of(base),
        spec_of(base, {"a": 0}),
        spec_of(base, rename={"a": "c"}),
        spec_of(base, shape={"a": (2,)}),
        spec_of(base, fill={"b": 1}),
        spec_of(base, fill={"b": 2}),
        spec_of(base, cast={"a": "float32"}),
        spec_of(base, cast={"a": "int16"}),
        spec_of(base, drop=("b",)),
    ]
    assert len({spec.fingerprint for spec in specs}) == len(specs)
