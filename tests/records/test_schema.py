"""From a schema and a dataset's options to the feature spec, and every reason to refuse."""

import json
import re
from typing import Any

import pyarrow as pa
import pytest

from tfr_assets.errors import ConfigError, SchemaError, TfrError
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import Feature, FeatureSpec, Kind

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


Parts = dict[str, tuple[str, tuple[int | None, ...], str | None]]


def parts(schema: dict[str, pa.DataType], **options: object) -> Parts:
    return {f.name: (f.kind.value, f.shape, f.part) for f in spec_of(schema, **options).features}


@pytest.mark.parametrize(
    ("data_type", "levels", "shape"),
    [
        (pa.list_(pa.list_(pa.int32())), 1, (None,)),
        (pa.list_(pa.list_(pa.int32()), 3), 1, (None,)),
        (pa.list_view(pa.large_list(pa.int8())), 1, (None,)),
        (pa.list_(pa.list_(pa.list_(pa.int8()), 2)), 2, (None,)),
        (pa.list_(pa.list_(pa.list_(pa.list_(pa.int8(), 4), 2))), 1, (None, 2, 4)),
    ],
    ids=str,
)
def test_lists_of_varying_lists_become_flat_values_and_row_lengths(
    data_type: pa.DataType, levels: int, shape: tuple[int | None, ...]
) -> None:
    lengths = {f"y/ragged_row_lengths_{n}": ("int64", (None,), f"ragged_row_lengths_{n}") for n in range(levels)}
    found = parts({"x": data_type}, rename={"x": "y"})
    assert found == {"y/ragged_flat_values": ("int64", shape, "ragged_flat_values"), **lengths}
    assert {f.base_name for f in spec_of({"x": data_type}).features} == {"x"}
    floats = spec_of({"x": data_type}, cast={"x": "float32"}).features
    assert [f.kind for f in floats] == [Kind.FLOAT32] + [Kind.INT64] * levels


def test_a_struct_of_data_and_shape_is_a_tensor() -> None:
    def tensor(shape: pa.DataType) -> pa.DataType:
        return pa.struct([("data", pa.list_(pa.float32())), ("shape", shape)])

    for shape in (pa.list_(pa.int32()), pa.large_list(pa.uint8())):
        varying = {"x": tensor(shape)}
        assert parts(varying) == parts(varying, tensor={"x": "packed"}) == {
            "x": ("float32", (None,), None), "x/shape": ("int64", (None,), "shape")
        }  # fmt: skip
        assert parts(varying, tensor={"x": "serialized"}) == {"x": ("bytes", (), "serialized")}
    ranked = {"s": pa.struct([("x", tensor(pa.list_(pa.int64(), 2)))])}
    assert parts(ranked)["s/x/shape"] == ("int64", (2,), "shape")
    assert parts(ranked, tensor={"s/x": "serialized"}) == {"s/x": ("bytes", (None, None), "serialized")}
    others = [
        pa.struct([("data", pa.list_(pa.int8())), ("shape", pa.int64())]),
        pa.struct([("data", pa.list_(pa.int8())), ("shape", pa.list_(pa.float32()))]),
        pa.struct([("data", pa.int8()), ("shape", pa.list_(pa.int64()))]),
        pa.struct([("data", pa.list_(pa.int8())), ("shape", pa.list_(pa.int64())), ("more", pa.int8())]),
    ]
    for other in others:
        assert {"x/data", "x/shape"} <= set(parts({"x": other}))


def test_a_list_of_structs_becomes_a_list_a_field() -> None:
    inner = pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string())), ("c", pa.list_(pa.float32(), 2))])
    assert parts({"x": pa.list_(inner)}) == {
        "x/a": ("int64", (None,), None),
        "x/b/ragged_flat_values": ("bytes", (None,), "ragged_flat_values"),
        "x/b/ragged_row_lengths_0": ("int64", (None,), "ragged_row_lengths_0"),
        "x/c": ("float32", (None, 2), None),
    }
    assert parts({"x": pa.list_(inner, 3)}, drop=("x/b",)) == {
        "x/a": ("int64", (3,), None), "x/c": ("float32", (3, 2), None)
    }  # fmt: skip
    assert parts({"x": pa.list_(inner), "n": pa.int8()}, drop=("x",)) == {"n": ("int64", (), None)}


def test_any_list_or_array_can_be_serialized() -> None:
    types: dict[str, tuple[pa.DataType, tuple[int | None, ...]]] = {
        "list": (pa.list_(pa.float64()), (None,)),
        "nested": (pa.list_(pa.list_(pa.uint64(), 3)), (None, 3)),
        "ragged": (pa.list_(pa.list_(pa.string())), (None, None)),
        "fixed": (pa.list_(pa.bool_(), 4), (4,)),
        "tensor": (pa.fixed_shape_tensor(pa.float16(), [2, 3]), (2, 3)),
    }
    for data_type, shape in types.values():
        assert parts({"x": data_type}, tensor={"x": "serialized"}) == {"x": ("bytes", shape, "serialized")}
    assert parts({"x": pa.list_(pa.int8())}, tensor={"x": "serialized"}, shape={"x": (2, 3)})["x"][1] == (2, 3)
    words = [spec_of({"x": t}, tensor={"x": "serialized"}).features[0].value_type for t, _ in types.values()]
    assert words == ["double", "uint64", "string", "bool", "halffloat"]


def test_nested_lists_can_be_packed() -> None:
    assert parts({"x": pa.list_(pa.list_(pa.list_(pa.int8(), 2)))}, tensor={"x": "packed"}) == {
        "x": ("int64", (None,), None), "x/shape": ("int64", (3,), "shape")
    }  # fmt: skip
    for data_type in (pa.list_(pa.int8()), pa.list_(pa.list_(pa.int8(), 2)), pa.fixed_shape_tensor(pa.int8(), [2, 3])):
        assert parts({"x": data_type}, tensor={"x": "packed"}) == parts({"x": data_type})


@pytest.mark.parametrize(
    ("data_type", "options", "problem"),
    [
        (pa.int8(), {"tensor": {"x": "serialized"}}, "no list, array or tensor"),
        (
            pa.list_(pa.int8()),
            {"tensor": {"x": "pickled"}},
            "features.tensor.x: expected packed or serialized",
        ),
        (pa.list_(pa.int8()), {"tensor": {"x": "serialized"}, "fill": {"x": 0}}, "features.fill.*varying length"),
        (pa.list_(pa.int8(), 2), {"tensor": {"x": "serialized"}, "fill": {"x": 128}}, "128 of column 'x' is no int8"),
        (pa.list_(pa.int8(), 2), {"tensor": {"x": "serialized"}, "fill": {"x": "a"}}, "becomes int64"),
        (pa.list_(pa.list_(pa.int8())), {"shape": {"x": (2, 2)}}, "features.shape.*list of lists of varying length"),
        (pa.list_(pa.list_(pa.int8())), {"fill": {"x": 1}}, "features.fill.*varying length"),
        (pa.struct([("data", pa.list_(pa.int8())), ("shape", pa.list_(pa.int8()))]), {"shape": {"x": (2,)}}, "no list"),
        (pa.struct([("data", pa.list_(pa.int8())), ("shape", pa.list_(pa.int8()))]), {"fill": {"x": 2}}, "varying"),
        (pa.int8(), {"sequence": ("x",)}, "features.sequence: column 'x' of type int8 is not a list"),
        (pa.struct([("a", pa.int8())]), {"sequence": ("x",)}, "column 'x/a' of type int8 is not a list"),
        (pa.list_(pa.int8()), {"sequence": ("x",), "shape": {"x": (2,)}}, "features.shape: column 'x' is one of"),
        (pa.list_(pa.int8()), {"sequence": ("x",), "tensor": {"x": "packed"}}, "features.tensor: column 'x' is one of"),
        (pa.list_(pa.int8()), {"sequence": ("x",), "fill": {"x": 2}}, "features.fill: column 'x' is one of"),
        (pa.list_(pa.int8()), {"sequence": ("x",), "names": {"x": ("a",)}}, "features.names: column 'x' is one of"),
        (pa.string(), {"names": {"x": ("a",)}}, "features.names: column 'x' becomes string, but classes are single"),
        (pa.bool_(), {"names": {"x": ("a",)}}, "becomes bool"),
        (pa.date32(), {"names": {"x": ("a",)}}, "single integers"),
        (pa.list_(pa.int8()), {"names": {"x": ("a",)}}, "single integers"),
        (pa.int8(), {"names": {"x": ()}}, "features.names.x: expected names such as"),
        (pa.int8(), {"names": {"x": ("a", "a")}}, "needs texts that differ"),
        (pa.int8(), {"names": {"x": ("a", 1)}}, "features.names.x: expected names such as"),
        (pa.int8(), {"names": {"x": "ab"}}, "features.names.x: expected names such as"),
    ],
    ids=str,
)
def test_options_that_cannot_be(data_type: pa.DataType, options: dict[str, object], problem: str) -> None:
    message = refusal(ConfigError, {"x": data_type}, **options)
    assert re.search(problem, message), message


def test_sequences_make_records_sequence_examples() -> None:
    inner = pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))])
    schema = {"n": pa.int8(), "x": pa.list_(pa.int8()), "s": pa.list_(inner), "f": pa.list_(pa.list_(pa.int8(), 2), 3)}
    spec = spec_of(schema, sequence=("s", "f"))
    assert (spec.sequence, spec.message) == (True, "tf.SequenceExample")
    assert {f.name: (f.sequence, f.shape, f.value_shape) for f in spec.features} == {
        "n": (False, (), ()), "x": (False, (None,), (None,)), "f": (True, (None, 2), (2,)),
        "s/a": (True, (None,), ()), "s/b": (True, (None, None), (None,)),
    }  # fmt: skip
    assert (spec_of(schema).sequence, spec_of(schema).message) == (False, "tf.Example")
    assert "list of lists of lists" in refusal(
        SchemaError, {"x": pa.list_(pa.list_(pa.list_(pa.int8())))}, sequence=("x",)
    )


def test_classes_are_named_by_options_or_by_the_source() -> None:
    schema = pa.schema([("label", pa.int64()), ("other", pa.uint8()), ("text", pa.string())])

    def names(classes: dict[str, list[str]], **options: Any) -> dict[str, tuple[str, ...] | None]:
        spec = derive_spec(schema, {}, FeatureOptions(**options), classes)
        return {f.name: f.names for f in spec.features}

    known = {"label": ["cat", "dog"], "gone": ["x"], "text": ["y"]}
    assert names(known) == {"label": ("cat", "dog"), "other": None, "text": None}
    assert names(known, names={"label": ("a", "b")})["label"] == ("a", "b")
    assert names(known, rename={"label": "class"}, names={"other": ["z"]})["class"] == ("cat", "dog")
    assert names(known, cast={"label": "string"})["label"] is None
    assert "label" not in names(known, drop=("label",))


def test_two_columns_may_not_become_one_tensor() -> None:
    ragged = pa.list_(pa.list_(pa.int8()))
    assert "'y'" in refusal(SchemaError, {"x": ragged, "y": pa.int8()}, rename={"x": "y"})
    tensor = pa.struct([("data", pa.list_(pa.int8())), ("shape", pa.list_(pa.int64()))])
    assert "'x/shape'" in refusal(SchemaError, {"x": tensor, "x/shape": pa.int8()})


def test_a_spec_of_an_earlier_version_is_read() -> None:
    old = [
        {"name": "a", "kind": "int64", "shape": [None, 2], "column": "a", "arrow_type": "list<item: int8>",
         "optional": True, "fill": None},
    ]  # fmt: skip
    spec = FeatureSpec.from_json(old)
    assert spec.features == (Feature("a", Kind.INT64, (None, 2), "a", "list<item: int8>", True),)
    assert json.loads(json.dumps(spec.to_json())) == old


def test_all_of_a_spec_survives_json() -> None:
    tensor = pa.struct([("data", pa.list_(pa.float64())), ("shape", pa.list_(pa.int64()))])
    schema = {"a": pa.list_(pa.list_(pa.int8())), "b": tensor, "c": pa.int8(), "d": pa.list_(pa.decimal128(5, 2))}
    options = FeatureOptions(
        tensor={"b": "serialized"}, sequence=("a",), names={"c": ("é", "b")}, cast={"d": "float32"}
    )
    spec = derive_spec(pa.schema(list(schema.items())), {}, options)
    again = FeatureSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec and again.fingerprint == spec.fingerprint
    assert {f.name: (f.part, f.sequence, f.names, f.cast_from) for f in again.features} == {
        "a": (None, True, None, None),
        "b": ("serialized", False, None, None),
        "c": (None, False, ("é", "b"), None),
        "d": (None, False, None, "decimal128(5, 2)"),
    }


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


@pytest.mark.parametrize("option", ["drop", "rename", "cast", "shape", "fill", "tensor", "sequence", "names"])
def test_an_unknown_column_is_named_with_the_option_and_the_closest_one(option: str) -> None:
    def options(column: str) -> dict[str, object]:
        value = {"shape": (2,), "tensor": "packed", "names": ("x",)}.get(option, "x")
        return {option: (column,) if option in ("drop", "sequence") else {column: value}}

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
    assert "features.cast: 'flaot32' of column 'a' is not an Arrow type" in refusal(
        ConfigError, {"a": pa.int8()}, cast={"a": "flaot32"}
    )


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
    assert "features.shape" in message and ("'x'" in message or "features.shape.x: expected a list of sizes" in message)


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
        spec_of(base, sequence=("a",)),
        spec_of(base, tensor={"a": "serialized"}),
        spec_of(base, names={"b": ("c",)}),
        spec_of(base, names={"b": ("d",)}),
    ]
    assert len({spec.fingerprint for spec in specs}) == len(specs)
