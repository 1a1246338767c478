"""Names of classes in tables: those of `ClassLabel` columns, as Hugging Face's `datasets` keeps them."""

import json
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

ClassNames = Mapping[str, tuple[str, ...]]
_KEY = b"huggingface"


def class_names(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """Returns names of classes by column of integers, that of 0 first, from the metadata of a schema."""
    try:
        features = json.loads((schema.metadata or {})[_KEY])["info"]["features"]
        found = {name: tuple(of["names"]) for name, of in features.items() if of.get("_type") == "ClassLabel"}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}
    return {name: names for name, names in found.items() if name in schema.names and _are_names(names)}


def _are_names(names: Sequence[object]) -> bool:
    return bool(names) and len(set(names)) == len(names) and all(isinstance(name, str) for name in names)


def fitting(names: ClassNames, extremes: Mapping[str, tuple[int, int] | None]) -> dict[str, tuple[str, ...]]:
    """Returns the names of those columns in which every value is known to be a class.

    Of unlabelled data, `datasets` writes -1 for each label: its column has no names then.

    Args:
        names: Names of classes by column.
        extremes: Smallest and largest value by column; None where they are not known, `(0, 0)` where there is none.
    """
    found = {}
    for column, classes in names.items():
        least, most = extremes.get(column) or (-1, -1)
        if 0 <= least <= most < len(classes):
            found[column] = classes
    return found


def extremes_of(values: pa.Array | pa.ChunkedArray, before: tuple[int, int] | None = (0, 0)) -> tuple[int, int] | None:
    """Returns the smallest and the largest of integers and of 0; None for other values, or where `before` is None."""
    if before is None or not pa.types.is_integer(values.type):
        return None
    found = pc.min_max(values).as_py()
    return (
        (before[0], before[1]) if found["min"] is None else (min(before[0], found["min"]), max(before[1], found["max"]))
    )


def common(every: Iterable[ClassNames]) -> dict[str, tuple[str, ...]]:
    """Returns the names that several files agree on."""
    first, *others = every
    return {column: names for column, names in first.items() if all(other.get(column) == names for other in others)}
