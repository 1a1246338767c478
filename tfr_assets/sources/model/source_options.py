"""What `source` is in YAML: a table, files of a kind, or several of these, joined."""

from dataclasses import fields
from typing import Annotated

from pydantic import AfterValidator, Field

from tfr_assets.option_groups import ColumnName, Expect, OneOf, Shorthand, options, problem, problem_at
from tfr_assets.sources.model.audio_options import AudioOptions
from tfr_assets.sources.model.image_options import ImageOptions
from tfr_assets.sources.model.kinds import KINDS
from tfr_assets.sources.model.table_options import FormatOptions, TableOptions
from tfr_assets.sources.model.text_options import TextOptions

PATH = Shorthand("path", "a path such as 'raw/*.parquet'")
_Name = Annotated[ColumnName, Field(pattern=r"^[^.]"), Expect("a name that does not begin with a dot")]


@options("source")
class FilesOptions(TableOptions):
    """Where raw data is: a path, a Python function, or files of a kind.

    Attributes:
        table: A table, or several in files, as without this key.
        images: Photographs.
        audio: Recordings.
        text: Texts.
    """

    table: Annotated[TableOptions, PATH] | None = Field(default=None, examples=["facts.csv"])
    images: Annotated[ImageOptions, PATH] | None = Field(
        default=None,
        examples=["photos/", {"path": "photos/", "labels": {"table": "labels.csv", "file": "name", "label": "class"}}],
    )
    audio: Annotated[AudioOptions, PATH] | None = Field(
        default=None, examples=[{"path": "recordings/", "labels": {"pattern": "([0-9])_.*"}, "samples": "float32"}]
    )
    text: Annotated[TextOptions, PATH] | None = Field(
        default=None, examples=["corpus/", {"path": "reviews.csv", "column": "review", "labels": {"column": "stars"}}]
    )

    @property
    def kind(self) -> str | None:
        """The kind that it names; None: it is a table without that key."""
        return next((kind for kind in KINDS if getattr(self, kind, None) is not None), None)

    def __post_init__(self) -> None:
        """Checks what goes together."""
        if self.kind is None:
            return super().__post_init__()
        for name in (*KINDS, *(field.name for field in fields(TableOptions))):
            value = getattr(self, name, None)
            is_default = (name == "columns" and value == "same") or value == FormatOptions()
            if name != self.kind and value and not is_default:
                text = f"beside `{self.kind}` nothing else is allowed; move it into `{self.kind}`"
                raise problem_at((name,), text, value)
        return None


@options("source.mixed.parts", {"mixed": "a part cannot be mixed itself. List its parts here"})
class PartOptions(FilesOptions):
    """One of the sources that are joined.

    Attributes:
        key: Of a table: the column that holds the keys. Default: the mixed source's `key`. Of files, their names are
            the keys.
        name: Begins the names of the part's columns, with a slash.
    """

    key: _Name | None = Field(default=None, examples=["photo"])
    name: _Name | None = Field(default=None, examples=["mask"])

    @property
    def has_columns(self) -> bool:
        """Whether its rows come from tables."""
        return not (self.images or self.audio or self.text) or bool(self.text and self.text.rows_have_columns)

    def __post_init__(self) -> None:
        """Checks what can be joined."""
        super().__post_init__()
        if self.images and self.images.column:
            text = "cannot be joined: such rows have no keys. Join files, or name the table itself as a part"
            raise problem_at(("images", "column"), text)
        if self.text and self.text.per == "line":
            text = "lines have no keys. Use `document`, or rows with a column of keys"
            raise problem_at(("text", "per"), text)
        if self.key and not self.has_columns:
            raise problem_at(("key",), "has no meaning for files, whose names are the keys; remove it")


def _two_or_more(parts: tuple[PartOptions, ...]) -> tuple[PartOptions, ...]:
    if len(parts) < 2:
        raise problem(f"expected a list of two or more sources; found {len(parts)}")
    return parts


@options("source.mixed")
class MixedOptions:
    """Several sources, joined by key into one record.

    Attributes:
        parts: What is joined: two or more.
        key: Names the feature of the key.
        missing: What is done with keys that not all parts have: `fail`, or `skip`, which leaves them out.
    """

    parts: Annotated[
        tuple[Annotated[PartOptions, PATH], ...],
        AfterValidator(_two_or_more),
        Expect("a list of two or more sources", deep=False),
    ] = Field(examples=[[{"images": "photos/"}, {"text": "captions/"}, {"table": "facts.csv"}]])
    key: _Name = Field(default="key", examples=["id"])
    missing: Annotated[str, OneOf(("fail", "skip"))] = Field(default="fail", examples=["skip"])


@options("source")
class SourceOptions(FilesOptions):
    """Where raw data is: a path, a Python function, files of a kind, or several of these.

    Attributes:
        mixed: Several of these, joined by key into one record.
    """

    mixed: MixedOptions | None = Field(
        default=None,
        examples=[{"key": "id", "parts": [{"images": "photos/"}, {"text": "captions/"}, {"table": "facts.csv"}]}],
    )
