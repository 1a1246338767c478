"""What a dataset's YAML says of its columns."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, PlainValidator, Strict

from tfr_assets.option_groups import Column, Expect, OneOf, options, problem
from tfr_assets.records.schema.features import TENSORS

_MOST_CLASSES = 1_000_000


def _class_names(value: Any) -> tuple[str, ...]:
    """Returns the name of each class, from 0 on."""
    named = dict(enumerate(value)) if isinstance(value, list | tuple) else value
    if not isinstance(named, Mapping) or not named or not all(map(_is_class, named, named.values())):
        raise problem(f"expected names such as [cat, dog], or {{1: cat, 2: dog}} with their numbers; found {value!r}")
    return tuple(named.get(number, str(number)) for number in range(max(named) + 1))


def _is_class(number: Any, name: Any) -> bool:
    return type(number) is int and 0 <= number <= _MOST_CLASSES and isinstance(name, str)


def _fill(value: Any) -> Any:
    if not isinstance(value, int | float | str):
        raise problem(f"expected a number or text; found {value!r}")
    return value  # unchanged: whether it fits is known with the column's type


def _columns(example: str) -> Expect:
    return Expect(f"columns with values, such as {example}", deep=False)


_Texts = Annotated[tuple[str, ...], Expect("a list of texts, such as [id, comment]")]
_Renamed = Annotated[Mapping[Column, Annotated[str, Expect("a new name")]], _columns("{dep_delay: delay}")]
_Types = Annotated[
    Mapping[Column, Annotated[str, Expect("an Arrow type such as float32")]], _columns("{price: float32}")
]
_Shape = Annotated[
    tuple[Annotated[int, Strict(), Field(gt=0)], ...],
    Field(min_length=1),
    Expect("a list of sizes such as [28, 28]"),
]
_Fills = Annotated[
    Mapping[Column, Annotated[int | float | str, PlainValidator(_fill, json_schema_input_type=int | float | str)]],
    _columns("{age: -1}"),
]
_Tensors = Annotated[
    Mapping[Column, Annotated[str, OneOf(TENSORS), Expect("packed or serialized")]], _columns("{embedding: packed}")
]
_ClassNames = Annotated[
    tuple[str, ...], PlainValidator(_class_names, json_schema_input_type=list[str] | dict[int, str])
]


@options("features")
class FeatureOptions:
    """What to do with which column. Columns that are not named are kept as they are.

    Attributes:
        drop: Columns to leave out.
        rename: New feature names by column.
        cast: Arrow types by column, such as `float32`. A value that does not survive the cast is an error.
        shape: Fixed shapes by list column: every row must have exactly that many values.
        fill: What readers put where a column is null.
        tensor: How columns of lists, arrays or tensors are stored: `packed` (their values) or `serialized` (as by
            tf.io.serialize_tensor).
        sequence: List columns that become feature lists: records are tf.SequenceExamples then.
        names: Names of classes by integer column: that of 0 first, or each with its number. A number that has no name
            is named by itself.

    Raises:
        ConfigError: A value is invalid.
    """

    drop: _Texts = Field(default=(), examples=[["id", "comment"]])
    rename: _Renamed = Field(default_factory=dict, examples=[{"dep_delay": "delay"}])
    cast: _Types = Field(default_factory=dict, examples=[{"price": "float32"}])
    shape: Annotated[Mapping[Column, _Shape], _columns("{pixels: [28, 28]}")] = Field(
        default_factory=dict, examples=[{"pixels": [28, 28]}]
    )
    fill: _Fills = Field(default_factory=dict, examples=[{"arr_delay": 0.0}])
    tensor: _Tensors = Field(default_factory=dict, examples=[{"embedding": "serialized"}])
    sequence: _Texts = Field(default=(), examples=[["frames"]])
    names: Annotated[Mapping[Column, _ClassNames], _columns("{label: [cat, dog]}")] = Field(
        default_factory=dict, examples=[{"label": ["cat", "dog"], "stars": {1: "bad", 5: "good"}}]
    )
