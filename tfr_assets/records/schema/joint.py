"""The features of several sets of files that are read as one: datasets that are mixed, slices of a dataset."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tfr_assets.errors import SchemaError
from tfr_assets.records.schema.features import Feature, FeatureSpec

_CLASSES_SHOWN = 10


def joint_spec(specs: Mapping[str, FeatureSpec], together: str, may_lack: bool = False) -> FeatureSpec:
    """Returns the features by which all records can be parsed; one may be absent if it may be absent in any.

    Args:
        specs: Of each set, by its name.
        together: What is done with them, for the error.
        may_lack: Whether a set may lack features of another, which are absent there.

    Raises:
        SchemaError: They have other features.
    """
    (first, spec), *others = specs.items()
    features = {feature.name: feature for feature in spec.features}
    for name, each in others:
        if each == spec:
            continue
        if each.sequence != FeatureSpec(tuple(features.values())).sequence:
            raise SchemaError(f"{first!r} and {name!r} cannot be {together}: the records of one are {each.message}s")
        theirs = {feature.name: feature for feature in each.features}
        for feature in sorted(features.keys() | theirs.keys()):
            mine, its = features.get(feature), theirs.get(feature)
            if may_lack and (only := mine if its is None else its if mine is None else None):
                features[feature] = replace(only, optional=True)
                continue
            if mine is None or its is None or _kind(mine) != _kind(its):
                raise SchemaError(
                    f"{first!r} and {name!r} cannot be {together}: feature {feature!r} is {_said(mine)} in the one, "
                    f"{_said(its)} in the other; `tfr diff` lists all differences"
                )
            features[feature] = replace(mine, optional=mine.optional or its.optional)
    # in the order of records; see `derive_spec`
    return FeatureSpec(tuple(sorted(features.values(), key=lambda feature: feature.name.encode() + b"\xff")))


def _kind(feature: Feature) -> dict[str, Any]:
    """Returns what must be the same for records to be parsed alike."""
    return {**vars(feature), "optional": None, "cast_from": None, "column": None}


def _said(feature: Feature | None) -> str:
    if feature is None:
        return "absent"
    classes = f", of the classes {', '.join(feature.names[:_CLASSES_SHOWN])}" if feature.names else ""
    return f"{feature.arrow_type} of shape {feature.shape}{classes}"
