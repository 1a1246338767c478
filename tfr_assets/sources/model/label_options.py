"""Where a row's class comes from, and what is done with a row that is bad: options of images, recordings and texts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator

from tfr_assets.option_groups import Expect, Flag, OneOf, Text, Values, options, problem, problem_at, validate_at

_OF_FILES = "`folder`, `none`, {pattern: REGEX}, or {table: FILE, file: COLUMN, label: COLUMN}"
_OF_TABLES = "`none` or {column: NAME}"


def _pattern(text: str) -> str:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise problem(f"{text!r} is not a regular expression: {error}") from error
    if not pattern.groups:
        raise problem(f"{text!r} has no group. Put parentheses around what names the class, such as '([a-z]+)_'")
    return text


def _differ(names: tuple[str, ...]) -> tuple[str, ...]:
    if twice := [name for index, name in enumerate(names) if name in names[:index]]:
        raise problem(f"{twice[0]!r} is there twice")
    return names


@options("labels")
class PatternLabels:
    """Classes in the names of files.

    Attributes:
        pattern: Searched in a file's base name; group `label`, or the first one, is the class.
    """

    pattern: Annotated[Text, AfterValidator(_pattern)] = Field(examples=["(?P<label>[0-9])_.*"])


@options("labels")
class TableLabels:
    """Classes in a table beside the files.

    Attributes:
        table: A CSV, Parquet or JSON lines file.
        file: Its column of files: relative path, base name or stem.
        label: Its column of classes.
    """

    table: Text = Field(examples=["labels.csv"])
    file: Text = Field(examples=["name"])
    label: Text = Field(examples=["class"])


@options("labels")
class ColumnLabels:
    """Classes in the table that holds the rows.

    Attributes:
        column: The column of classes.
    """

    column: Text = Field(examples=["stars"])


@dataclass(frozen=True)
class LabelOptions:
    """Where a row's class comes from.

    Attributes:
        by: `folder`, `none`, `pattern`, `table` or `column`; empty: `folder` where files lie in subfolders, otherwise
            `none`.
        pattern: As of `PatternLabels`.
        table: As of `TableLabels`.
        file: As of `TableLabels`.
        label: For `table` and `column`: the column of classes.
        classes: The classes in the order of their labels; None: all that are found, in natural order.
    """

    by: str = ""
    pattern: re.Pattern[str] | None = None
    table: str = ""
    file: str = ""
    label: str = ""
    classes: tuple[str, ...] | None = None


Labels = Literal["folder", "none"] | PatternLabels | TableLabels | ColumnLabels
_Classes = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...],
    Field(min_length=1),
    Expect("a list of names such as [cat, dog]", remedy="Put quotes around numbers and words such as no"),
    AfterValidator(_differ),
]


@options("source")
class ClassifiedOptions:
    """What images, recordings and texts have in common.

    Attributes:
        path: A file, a folder, a glob, or an fsspec URL of these.
        storage_options: Passed to fsspec, for a URL that needs it. Leave credentials to the environment: a run keeps
            its settings in the instance's storage.
        labels: Where classes come from: `folder`, `none`, a pattern, a table, or a column. Default: `folder` where
            files lie in subfolders, otherwise `none`.
        classes: The classes, in the order of their labels. Default: all that are found, in natural order.
        on_error: What is done with a file that is bad: `fail`, or `skip`, which leaves it out and lists it.
        follow_links: Whether links are followed that lead out of the folder.
    """

    path: Text = Field(examples=["photos/", "s3://bucket/photos/"])
    storage_options: Values = Field(default_factory=dict, examples=[{"anon": True}])
    labels: Annotated[Any, PlainValidator(lambda said: said, json_schema_input_type=Labels)] = Field(
        default=None, examples=["none", {"table": "labels.csv", "file": "name", "label": "class"}]
    )
    classes: _Classes | None = Field(default=None, examples=[["cat", "dog"]])
    on_error: Annotated[str, OneOf(("fail", "skip"))] = Field(default="fail", examples=["skip"])
    follow_links: Flag = Field(default=False, examples=[True])

    @property
    def skip(self) -> bool:
        """Whether bad files are left out."""
        return self.on_error == "skip"

    @property
    def rows_have_columns(self) -> bool:
        """Whether rows come from tables, so that classes are in a column rather than in names and folders of files."""
        return False

    @property
    def label_options(self) -> LabelOptions:
        """Where classes come from."""
        said, classes = self.labels, self.classes
        if said is None:
            return LabelOptions("none" if self.rows_have_columns else "", classes=classes)
        if said == "none" or (said == "folder" and not self.rows_have_columns):
            return LabelOptions(said, classes=classes)
        if not isinstance(said, Mapping):
            accepted = _OF_TABLES if self.rows_have_columns else _OF_FILES
            raise problem_at(("labels",), f"expected {accepted}; found {said!r}", said)
        if self.rows_have_columns:
            return LabelOptions("column", label=validate_at(ColumnLabels, said, "labels").column, classes=classes)
        if "pattern" in said:
            pattern = re.compile(validate_at(PatternLabels, said, "labels").pattern)
            return LabelOptions("pattern", pattern=pattern, classes=classes)
        table = validate_at(TableLabels, said, "labels")
        return LabelOptions("table", table=table.table, file=table.file, label=table.label, classes=classes)

    def __post_init__(self) -> None:
        """Checks what goes together."""
        _ = self.label_options
        if self.follow_links and self.rows_have_columns:
            raise problem_at(("follow_links",), "has no meaning beside `column`; remove it", True)
