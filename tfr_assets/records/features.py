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
| struct                                  | one feature a field, named `column/field`                          |
| extension                               | as its storage                                                     |
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """The three kinds of values that a tf.train.Feature can hold."""

    INT64 = "int64"
    FLOAT32 = "float32"
    BYTES = "bytes"


@dataclass(frozen=True)
class Feature:
    """One feature of every record.

    Attributes:
        name: Its key in the tf.Example.
        kind: What its list holds.
        shape: `()` for a scalar, `(n, …)` for a fixed shape, `(None, …)` for lists of varying length.
        column: Path of the column it is made from, such as `address/city` for a struct's field.
        arrow_type: The column's type, so that a reader can tell dates from numbers.
        optional: Whether a record may lack it, because the column has nulls.
        fill: What a reader shall put where it is absent; None leaves the choice to the reader.
    """

    name: str
    kind: Kind
    shape: tuple[int | None, ...]
    column: str
    arrow_type: str
    optional: bool
    fill: int | float | str | None = None


@dataclass(frozen=True)
class FeatureSpec:
    """All features of a record, sorted by name as they lie in it."""

    features: tuple[Feature, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """Returns the spec as JSON-ready values."""
        return [asdict(feature) for feature in self.features]

    @classmethod
    def from_json(cls, items: list[dict[str, Any]]) -> "FeatureSpec":
        """Returns the spec that `to_json` gave."""
        return cls(tuple(Feature(**{**f, "kind": Kind(f["kind"]), "shape": tuple(f["shape"])}) for f in items))

    @property
    def fingerprint(self) -> str:
        """Hash of the spec: files with equal fingerprints are parsed alike."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class FeatureOptions:
    """What a dataset's YAML says of its columns; columns not named are kept as they are.

    Attributes:
        drop: Columns to leave out.
        rename: New feature names by column.
        cast: Arrow type names by column, such as `float32`; a lossy cast is refused while encoding.
        shape: Fixed shapes by list column.
        fill: Values that readers put where the column is null.
    """

    drop: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    cast: Mapping[str, str] = field(default_factory=dict)
    shape: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fill: Mapping[str, int | float | str] = field(default_factory=dict)
