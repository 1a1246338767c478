"""Options `labels` and `classes`: where a row's class comes from, and what happens to it in records."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import ConfigError
from tfr_assets.sources.model.kinds import CLASS
from tfr_assets.sources.model.options import check_known
from tfr_assets.storage.file_names import natural

_OF_FILES = "`folder`, `none`, {pattern: REGEX}, or {table: FILE, file: COLUMN, label: COLUMN}"
_OF_TABLES = "`none` or {column: NAME}"


@dataclass(frozen=True)
class LabelOptions:
    """Where a row's class comes from.

    Attributes:
        by: `folder`, `none`, `pattern`, `table` or `column`; empty: `folder` where files lie in subfolders, otherwise
            `none`.
        pattern: For `pattern`: searched in a file's base name; group `label`, or the first one, is the class.
        table: For `table`: a CSV, Parquet or JSON lines file.
        file: For `table`: its column of files (relative path, base name or stem).
        label: For `table` and `column`: the column of classes.
        classes: The classes in the order of their labels; None: all that are found, in natural order.
    """

    by: str = ""
    pattern: re.Pattern[str] | None = None
    table: str = ""
    file: str = ""
    label: str = ""
    classes: tuple[str, ...] | None = None


def parse_labels(options: Mapping[str, Any], field: str, rows_have_columns: bool = False) -> LabelOptions:
    """Returns what the options `labels` and `classes` of a kind mean. Looks at no file.

    Args:
        options: All options of the kind; others than these two are skipped.
        field: What they are options of, for messages: `source.images`.
        rows_have_columns: Whether rows come from tables, so that `labels: {column: NAME}` is what is possible (and
            `none` is the default) rather than folder, pattern and table.

    Raises:
        ConfigError: They are invalid.
    """
    labels, classes = options.get("labels"), _parse_classes(options.get("classes"), field)
    field = f"{field}.labels"
    accepted = _OF_TABLES if rows_have_columns else _OF_FILES
    if labels is None:
        return LabelOptions("none" if rows_have_columns else "", classes=classes)
    if labels == "none" or (labels == "folder" and not rows_have_columns):
        return LabelOptions(labels, classes=classes)
    if not isinstance(labels, Mapping):
        raise ConfigError(f"{field}: expected {accepted}; found {labels!r}.")
    for name, value in labels.items():
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{field}.{name}: expected text, found {value!r}.")
    if rows_have_columns:
        _check_names(labels, ("column",), field)
        return LabelOptions("column", label=labels["column"], classes=classes)
    if "pattern" in labels:
        _check_names(labels, ("pattern",), field)
        return LabelOptions("pattern", pattern=_parse_pattern(labels["pattern"], field), classes=classes)
    _check_names(labels, ("table", "file", "label"), field)
    return LabelOptions("table", table=labels["table"], file=labels["file"], label=labels["label"], classes=classes)


def _check_names(labels: Mapping[str, Any], names: tuple[str, ...], field: str) -> None:
    check_known(labels, names, field)
    if missing := [name for name in names if name not in labels]:
        raise ConfigError(f"{field}.{missing[0]}: missing. It takes {', '.join(names)}.")


def _parse_pattern(text: str, field: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigError(f"{field}.pattern: {text!r} is not a regular expression: {error}.") from error
    if not pattern.groups:
        raise ConfigError(
            f"{field}.pattern: {text!r} has no group. Put parentheses around what names the class, such as '([a-z]+)_'."
        )
    return pattern


def _parse_classes(classes: Any, field: str) -> tuple[str, ...] | None:
    if classes is None:
        return None
    if (
        not isinstance(classes, list | tuple)
        or not classes
        or not all(isinstance(name, str) and name for name in classes)
    ):
        raise ConfigError(
            f"{field}.classes: expected a list of names such as [cat, dog], found {classes!r}. "
            "Put quotes around numbers and words such as no."
        )
    if twice := [name for index, name in enumerate(classes) if name in classes[:index]]:
        raise ConfigError(f"{field}.classes: {twice[0]!r} occurs twice.")
    return tuple(classes)


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
