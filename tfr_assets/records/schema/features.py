"""The feature spec: which features a record has, and how they are parsed.

It is derived once, from the inventory's schema and the dataset's options, and stored with the files, so that a reader
has nothing to declare.

| Arrow                                   | feature  | value                                                   |
|-----------------------------------------|----------|---------------------------------------------------------|
| int8 … int64, uint8 … uint64, bool      | int64    | the number; uint64 beyond int64 is an error             |
| float16, float32, float64               | float32  | rounded to float32, as TensorFlow does                  |
| string, binary and their variants       | bytes    | the bytes (strings: UTF-8)                              |
| date32, date64                          | int64    | days since 1970-01-01; milliseconds for date64          |
| timestamp, time, duration               | int64    | a count of the column's unit (timestamps: since 1970 UTC) |
| decimal                                 | bytes    | its exact decimal text; `cast` it to float32 for numbers |
| dictionary                              | as its values                                                      |
| list, large list, fixed-size list       | as its values, shape `(None,)` or `(n,)`                           |
| list of fixed-size lists                | as its values, shape `(None, n)`                                   |
| list of lists of varying length         | ragged: several features, see below                                |
| fixed-shape tensor                      | as its values, of the tensor's shape                               |
| struct of `data` (a list) and `shape` (a list of integers) | a tensor of varying shape: two features, see below |
| any other struct                        | one feature a field, named `column/field`                          |
| list of structs                         | one feature a field, a list each, named `column/field`             |
| extension                               | as its storage                                                     |

A column `x` that one list cannot hold becomes several features:

- ragged: `x/ragged_flat_values`, all values, and `x/ragged_row_lengths_0`, `…_1`, …, the lengths of the inner lists,
  level by level from the outside in. TensorFlow Datasets names and counts them so.
- a tensor of varying shape: `x`, all values in row-major order, and `x/shape`, int64.

Options change what happens to it:

- `tensor: {x: packed}`: nested lists, which must be rectangular in every row, become a tensor of varying shape.
- `tensor: {x: serialized}`: a list or tensor becomes one bytes value, that of `tf.io.serialize_tensor`. All numbers
  keep their type and all of their bits: float64 and uint64, too.
- `sequence: [x]`: the elements of a list become the steps of a feature list, one value or one list each. Records are
  then tf.SequenceExamples, with all other columns in their context. A list of structs becomes one feature list a field.
- `names: {x: [cat, dog]}`: integers stay integers, 0 … 1 here; what they stand for is kept in the spec.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

# what a feature holds of its column, where that is not simply its values; also the last part of such features' names
SHAPE = "shape"
FLAT_VALUES = "ragged_flat_values"
ROW_LENGTHS = "ragged_row_lengths_"  # and the level: 0 for the outermost of the inner lists
SERIALIZED = "serialized"

PACKED = "packed"
TENSORS = (PACKED, SERIALIZED)

NARROW_TYPES = frozenset(("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"))  # stored as int64
TEXT = frozenset(("string", "large_string", "string_view"))
_VALUE_TYPE = re.compile(r"(?:^|: |<values=|\[value_type=)(\w+)")


class Kind(StrEnum):
    """The three kinds of values that a tf.train.Feature can hold."""

    INT64 = "int64"
    FLOAT32 = "float32"
    BYTES = "bytes"


@dataclass(frozen=True)
class Feature:
    """One feature of every record.

    Attributes:
        name: Its key in the tf.Example, or among the feature lists of a tf.SequenceExample.
        kind: What its list holds.
        shape: `()` for a scalar, `(n, …)` for a fixed shape, `(None, …)` for lists of varying length. Of a feature
            list: `(None, …)`, steps first. Of a serialized tensor: the tensor's own shape, with a None for each size
            that varies; `()` where even their number does.
        column: Path of the column it is made from, such as `address/city` for a struct's field.
        arrow_type: The type of what it holds, so that a reader can tell dates from numbers.
        optional: Whether a record may lack it, because the column has nulls.
        fill: What a reader puts where it is absent; None leaves the choice to the reader.
        part: What it holds of its column: None, its values; `ragged_flat_values` or `ragged_row_lengths_0`, …, of a
            ragged one; `shape`; `serialized`, the whole tensor as one bytes value.
        sequence: Whether it is a feature list.
        names: Names of the classes that its integers stand for: 0 for the first.
        cast_from: The type that the column's values had before the dataset's options cast them.
    """

    name: str
    kind: Kind
    shape: tuple[int | None, ...]
    column: str
    arrow_type: str
    optional: bool
    fill: int | float | str | None = None
    part: str | None = None
    sequence: bool = False
    names: tuple[str, ...] | None = None
    cast_from: str | None = None

    @property
    def value_type(self) -> str:
        """Arrow's word for the type of the values inside lists and dictionaries, such as `int8` or `timestamp`."""
        return _VALUE_TYPE.findall(self.arrow_type)[-1]

    @property
    def is_text(self) -> bool:
        """Whether it holds texts rather than other bytes."""
        return self.kind is Kind.BYTES and self.value_type in TEXT and self.part != SERIALIZED

    @property
    def value_shape(self) -> tuple[int | None, ...]:
        """Shape of the values in one tf.train.Feature: of a step, where there are several."""
        if self.part == SERIALIZED:
            return ()
        return self.shape[1:] if self.sequence else self.shape

    @property
    def counts(self) -> bool:
        """Whether it holds sizes rather than values: lengths of lists, or shapes."""
        return self.part == SHAPE or self.is_row_lengths

    @property
    def is_row_lengths(self) -> bool:
        """Whether it holds the lengths of a ragged column's inner lists."""
        return self.part is not None and self.part.startswith(ROW_LENGTHS)

    @property
    def level(self) -> int:
        """Of lengths of inner lists: how deep these lie, 0 for the outermost of them."""
        assert self.part
        return int(self.part.removeprefix(ROW_LENGTHS))

    @property
    def base_name(self) -> str:
        """The name of the tensor that readers make of it: all features of a ragged column become one."""
        is_ragged = self.part == FLAT_VALUES or self.is_row_lengths
        return self.name.removesuffix(f"/{self.part}") if is_ragged else self.name

    @property
    def is_ragged(self) -> bool:
        """Whether rows vary in length for readers: lists do, and optional integers that nothing is put in place of."""
        if self.part == SERIALIZED:  # one string of bytes, whatever it stands for
            return False
        return None in self.shape or (self.optional and self.kind is Kind.INT64 and self.fill is None)

    @property
    def number_type(self) -> str:
        """NumPy's word for the type of readers' numbers: the column's, unless `fill` lies outside of it."""
        if self.kind is not Kind.INT64 or self.value_type not in NARROW_TYPES:
            return self.kind.value
        fits = self.fill is None or np.int64(self.fill).astype(self.value_type) == self.fill
        return self.value_type if fits else self.kind.value

    @property
    def size(self) -> int:
        """The product of all sizes that do not vary."""
        return math.prod(size for size in self.value_shape if size is not None)


@dataclass(frozen=True)
class FeatureSpec:
    """All features of a record, sorted by name as they lie in it."""

    features: tuple[Feature, ...]

    @cached_property
    def columns(self) -> Mapping[str, tuple[Feature, ...]]:
        """The features that each column of readers is made of, by name: its values, then its inner lists' lengths.

        Columns are in the order of the features, lengths from the outermost list to the innermost.
        """
        found = {feature.base_name: [feature] for feature in self.features if not feature.is_row_lengths}
        lengths = [feature for feature in self.features if feature.is_row_lengths]
        for feature in sorted(lengths, key=lambda feature: feature.level):
            found[feature.base_name].append(feature)
        return {name: tuple(parts) for name, parts in found.items()}

    def columns_of(self, names: Iterable[str]) -> list[str]:
        """Returns which of a table's columns features are made of."""
        # a column's own name may hold a slash, so that a feature's path does not tell where the column's name ends
        paths = {path for f in self.features for path in accumulate(f.column.split("/"), "{}/{}".format)}
        return [name for name in names if name in paths]

    @property
    def sequence(self) -> bool:
        """Whether records are tf.SequenceExamples rather than tf.Examples."""
        return any(feature.sequence for feature in self.features)

    @property
    def message(self) -> str:
        """What records are called."""
        return "tf.SequenceExample" if self.sequence else "tf.Example"

    def to_json(self) -> list[dict[str, Any]]:
        """Returns the spec as JSON-ready values. What few features have is left out of the others."""
        return [
            {key: value for key, value in vars(feature).items() if value or key not in _SELDOM}
            for feature in self.features
        ]

    @classmethod
    def from_json(cls, items: list[dict[str, Any]]) -> "FeatureSpec":
        """Returns the spec that `to_json` gave.

        Raises:
            ValueError: It gave something else, as do KeyError, TypeError, AttributeError and IndexError.
        """
        return cls(tuple(_feature(item) for item in items))

    @property
    def fingerprint(self) -> str:
        """Hash of the spec: files with equal fingerprints are parsed alike."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]


_SELDOM = ("part", "sequence", "names", "cast_from")


def _feature(item: Mapping[str, Any]) -> Feature:
    names = item.get("names")
    read = {"kind": Kind(item["kind"]), "shape": tuple(item["shape"]), "names": None if names is None else tuple(names)}
    feature = Feature(**{**item, **read})
    for name, kinds in _TYPES.items():
        if not isinstance(getattr(feature, name), kinds):
            raise TypeError(f"{name} of feature {feature.name!r} is {getattr(feature, name)!r}")
    if not all(size is None or (type(size) is int and size >= 0) for size in feature.shape):
        raise ValueError(f"shape of feature {feature.name!r} is {feature.shape!r}")
    if not all(isinstance(label, str) for label in feature.names or ()):
        raise TypeError(f"names of feature {feature.name!r} are {feature.names!r}")
    return feature


_TYPES = {
    "name": str, "column": str, "arrow_type": str, "optional": bool, "fill": int | float | str | None,
    "part": str | None, "sequence": bool, "cast_from": str | None,
}  # fmt: skip
