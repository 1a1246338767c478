"""Arrow schema + options → the feature spec; the tables in `records.schema.features` say what becomes what."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tfr_assets.errors import ConfigError, SchemaError
from tfr_assets.records.schema.arrow_types import leaves
from tfr_assets.records.schema.column_features import features_of
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import Feature, FeatureSpec, Kind


def derive_spec(
    schema: pa.Schema,
    null_counts: Mapping[str, int | None],
    options: FeatureOptions | None = None,
    classes: Mapping[str, Sequence[str]] | None = None,
) -> FeatureSpec:
    """Returns the features that records of this schema have.

    Args:
        schema: The table's.
        null_counts: Nulls by path of a column; one that is missing or None may have some.
        options: What to drop, rename, cast, shape, fill and name, and which columns are tensors or feature lists.
        classes: Names of classes by column, as the source knows them; `options.names` goes before them, and a column
            that becomes something else than an integer has none.

    Raises:
        SchemaError: A column that a record cannot hold, or two features of one name.
        ConfigError: The options name a column that is not there, or are invalid.
    """
    options = options or FeatureOptions()
    columns = dict(_unique(leaves(schema)))
    for name, chosen in vars(options).items():
        _check_columns(name, chosen, schema, columns, options.rename)
    dropped, sequence = _chosen(options.drop, columns), _chosen(options.sequence, columns)
    features = [
        feature
        for path, data_type in columns.items()
        if path not in dropped
        for feature in features_of(path, data_type, null_counts.get(path) != 0, options, path in sequence)
    ]
    if not features:
        raise ConfigError("features.drop leaves no column; keep at least one")
    _check_names_differ(features)
    features = [_with_classes(feature, options.names, classes or {}) for feature in features]
    # 0xff, which no UTF-8 holds, puts a name behind those that it begins: so does protobuf's runtime for Python
    return FeatureSpec(tuple(sorted(features, key=lambda feature: feature.name.encode() + b"\xff")))


def _check_names_differ(features: Iterable[Feature]) -> None:
    by_name: dict[str, Feature] = {}
    for feature in features:
        for name in (feature.name, feature.base_name):
            if (other := by_name.setdefault(name, feature)).column != feature.column:
                raise SchemaError(
                    f"columns {other.column!r} and {feature.column!r} would both become the feature {name!r}; "
                    "rename one of them under features.rename"
                )


def _unique(columns: Iterable[tuple[str, pa.DataType]]) -> Iterator[tuple[str, pa.DataType]]:
    seen: set[str] = set()
    for path, data_type in columns:
        if path in seen:
            raise SchemaError(f"two columns are named {path!r}; rename one of them in the source")
        seen.add(path)
        yield path, data_type


def _chosen(names: Iterable[str], columns: Mapping[str, pa.DataType]) -> set[str]:
    """Returns the columns that are named, or that lie in a struct or list of structs that is."""
    chosen = set(names)
    structs = chosen - columns.keys()
    return {path for path in columns if path in chosen or any(path.startswith(f"{name}/") for name in structs)}


def _check_columns(
    option: str,
    chosen: Iterable[str],
    schema: pa.Schema,
    columns: Mapping[str, pa.DataType],
    renames: Mapping[str, str],
) -> None:
    known = set(columns)
    if option in ("drop", "sequence"):  # structs and lists of them, too
        known |= set(schema.names) | {path[:at] for path in columns for at, char in enumerate(path) if char == "/"}
    for column in chosen:
        if column not in known:
            before = [path for path, renamed in renames.items() if renamed == column]
            close = before or difflib.get_close_matches(column, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"columns are {', '.join(columns)}"
            raise ConfigError(f"features.{option}: there is no column {column!r}; {hint}")


def _with_classes(
    feature: Feature, chosen: Mapping[str, Sequence[str]], classes: Mapping[str, Sequence[str]]
) -> Feature:
    """Gives a feature the names of its classes, if there are any."""
    path = feature.column
    if path not in chosen and path not in classes:
        return feature
    is_class = feature.kind is Kind.INT64 and not feature.shape and feature.value_type.lstrip("u").startswith("int")
    if not is_class and path in chosen:
        raise ConfigError(
            f"features.names: column {path!r} becomes {feature.arrow_type}, but classes are single integers"
        )
    given = chosen.get(path, classes.get(path, ()))
    names = tuple(given)
    if (
        isinstance(given, str)
        or not names
        or len(set(names)) != len(names)
        or not all(isinstance(name, str) for name in names)
    ):
        raise ConfigError(f"features.names: column {path!r} needs texts that differ, that of class 0 first")
    return replace(feature, names=names) if is_class else feature
