"""What happens to a row's class in records."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.sources.model.kinds import CLASS
from tfr_assets.sources.model.label_options import LabelOptions
from tfr_assets.storage.file_names import natural


def class_names(found: set[str], options: LabelOptions) -> tuple[str, ...]:
    """Returns the names of all classes in the order of their labels: as pinned, otherwise in natural order."""
    return options.classes or tuple(sorted(found, key=natural))


def label_key(prefix: str) -> str:
    """Returns the name of the label's column, which is also its key in `Found.classes`: `image/class/label`."""
    return f"{prefix}/class/label"


def label_fields(prefix: str, classes: Mapping[str, tuple[str, ...]]) -> list[pa.Field]:
    """Returns the columns that labelled records have: `PREFIX/class/label` int64 and `PREFIX/class/text` string.

    Args:
        prefix: `image`, `audio` or `text`.
        classes: As `list_rows` found them; without labels of this prefix there are no columns.
    """
    if label_key(prefix) not in classes:
        return []
    return [pa.field(label_key(prefix), pa.int64()), pa.field(f"{prefix}/class/text", pa.string())]


def made_nulls(schema: pa.Schema, listed: Mapping[str, int | None]) -> dict[str, int | None]:
    """Returns the nulls of a medium's columns from those of its listing's.

    A label is missing where its text is; what is neither that nor listed is made of a file's bytes, and always there.
    """
    made = {name: listed[CLASS] if "/class/" in name else 0 for name in schema.names}
    return made | {name: count for name, count in listed.items() if name in made}


def label_columns(rows: pa.RecordBatch, prefix: str, classes: Mapping[str, tuple[str, ...]]) -> dict[str, pa.Array]:
    """Returns the columns of `label_fields` by name, from a listing's `.class`; null where that is null."""
    if label_key(prefix) not in classes:
        return {}
    texts = rows.column(CLASS)
    labels = pc.index_in(texts, value_set=pa.array(classes[label_key(prefix)], texts.type), skip_nulls=True)
    return {label_key(prefix): labels.cast(pa.int64()), f"{prefix}/class/text": texts}
