"""Options of tables: where they are, and how text in them is read."""

import codecs
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import pyarrow as pa
from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo

from tfr_assets.option_groups import Column, Expect, Flag, OneOf, Text, Values, Whole, options, problem, problem_at

UNION = "union"
FORMATS = ("parquet", "csv", "jsonl", "arrow")
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "csv": ("delimiter", "quote_char", "column_names", "skip_rows", "encoding", "null_values", "column_types"),
    "jsonl": ("column_types",),
    "parquet": (),
    "arrow": (),
}
_CALLABLE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\([^()]+\))?")
_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_UNITS = ("s", "ms", "us", "ns")
_TYPES: Mapping[str, pa.DataType] = {
    **{name: getattr(pa, name)() for name in ("bool_", *_INTEGERS, "float32", "float64", "string", "binary")},
    **{name: getattr(pa, name)() for name in ("large_string", "large_binary", "date32", "date64")},
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "time32[s]": pa.time32("s"),
    "time32[ms]": pa.time32("ms"),
    "time64[us]": pa.time64("us"),
    "time64[ns]": pa.time64("ns"),
    **{f"timestamp[{unit}]": pa.timestamp(unit) for unit in _UNITS},
    **{f"timestamp[{unit}, UTC]": pa.timestamp(unit, "UTC") for unit in _UNITS},
}
TYPE_NAMES = tuple(name for name in _TYPES if name != "bool_")


def column_types(options: Mapping[str, Any]) -> dict[str, pa.DataType]:
    """Returns the Arrow types that the user's `column_types` name."""
    return {str(column): _TYPES[name] for column, name in (options.get("column_types") or {}).items()}


def unfit_option(format_: str | None, names: Iterable[str]) -> tuple[str, str] | None:
    """Returns the first option that a format does not have, and what to say of it; None if it has all."""
    if format_:
        known = _OPTIONS[format_]
        for name in names:
            if name not in known:
                remedy = f"Known are {', '.join(known)}" if known else "It has none: remove it"
                return name, f"is not an option of format {format_!r}. {remedy}"
    return None


def _check_fit(value: Any, info: ValidationInfo) -> Any:
    known = [name for name in value if name in _OPTIONS["csv"]] if isinstance(value, Mapping) else []
    if unfit := unfit_option(info.data.get("format"), known):
        raise problem_at((unfit[0],), unfit[1])
    return value


def _encoding(name: Any) -> str:
    try:
        "".encode(name)
        codecs.getincrementaldecoder(name)
    except (LookupError, TypeError):
        raise problem(f"{name!r} is not an encoding. Common ones: utf-8, latin-1, cp1252, utf-16") from None
    return str(name)


def _column_type(name: Any) -> str:
    if not isinstance(name, str) or name not in _TYPES:
        raise problem(f"{name!r} is not a type. Choose one of: {', '.join(TYPE_NAMES)}")
    return name


def _callable(name: str) -> str:
    if not _CALLABLE.fullmatch(name):
        raise problem(f"{name!r} is not of the form `package.module:function`, such as `my_data.load:rows`")
    return name


Encoding = Annotated[str, PlainValidator(_encoding, json_schema_input_type=str)]
_Character = Annotated[str, Field(pattern=r"^[\x00-\x7F]$"), Expect("one ASCII character")]
_Texts = Annotated[tuple[str, ...], Expect("a list of texts")]
_ColumnTypes = Annotated[
    Mapping[Column, Annotated[str, PlainValidator(_column_type, json_schema_input_type=str)]],
    Expect("column names with types", deep=False),
]


@options("source.options")
class FormatOptions:
    """How text in tables is read: all of CSV, `column_types` also of JSON lines.

    Attributes:
        delimiter: What separates values: one ASCII character.
        quote_char: What values are quoted with: one ASCII character; null: nothing.
        column_names: Names of the columns, for files without a header.
        skip_rows: Lines to skip before the header.
        encoding: As Python names it.
        null_values: Texts that stand for a missing value, in columns of strings, too.
        column_types: Arrow types by column.
    """

    delimiter: _Character = Field(default=",", examples=[";"])
    quote_char: _Character | None = Field(default='"', examples=["'"])
    column_names: _Texts | None = Field(default=None, examples=[["id", "name"]])
    skip_rows: Annotated[int, Whole(0)] = Field(default=0, examples=[1])
    encoding: Encoding = Field(default="utf-8", examples=["latin-1"])
    null_values: _Texts | None = Field(default=None, examples=[["", "NA"]])
    column_types: _ColumnTypes | None = Field(default=None, examples=[{"price": "float32", "day": "date32"}])


@options("source")
class TableOptions:
    """Tables in files, or from a Python function.

    Attributes:
        path: A file, a folder (with all its subfolders), a glob, or an fsspec URL of these (`s3://`, `https://`, …).
            `~` is the home folder; relative paths start at the project's root.
        callable: Instead of `path`: `package.module:function`, a function without arguments that returns or yields
            Arrow tables or batches, pandas DataFrames, or dicts (one per row); or what is a table or a DataFrame. With
            `package.module:function({slice})`, it is called with the key of a slice, a text.
        format: `parquet`, `csv`, `jsonl` or `arrow`. Default: by the files' endings.
        options: How text is read.
        storage_options: Passed to fsspec, for a URL that needs it. Leave credentials to the environment: a run keeps
            its settings in the instance's storage.
        columns: Of tables in several files: `same`, all must have the same columns; or `union`, a file may lack some,
            which are null there. Lines of jsonl may lack keys anyway.
        follow_links: Of files on a local disk: whether links are followed that lead out of the folder.
    """

    path: Text | None = Field(default=None, examples=["raw/*.parquet", "s3://bucket/table/"])
    callable: Annotated[Text, AfterValidator(_callable)] | None = Field(
        default=None, examples=["my_package.my_module:my_rows"]
    )
    format: Annotated[str, OneOf(FORMATS)] | None = Field(default=None, examples=["csv"])
    options: Annotated[FormatOptions, BeforeValidator(_check_fit)] = Field(
        default_factory=FormatOptions, examples=[{"delimiter": ";", "null_values": ["", "NA"]}]
    )
    storage_options: Values = Field(default_factory=dict, examples=[{"anon": True}])
    columns: Annotated[str, OneOf(("same", UNION))] = Field(default="same", examples=["union"])
    follow_links: Flag = Field(default=False, examples=[True])

    def __post_init__(self) -> None:
        """Checks what goes together."""
        if bool(self.path) == bool(self.callable):
            found = "both are set" if self.path else "neither is set"
            raise problem(f"set exactly one of `path` and `callable`; {found}")
        for name in ("format", "options", "storage_options", "follow_links") if self.callable else ():
            value = getattr(self, name)
            if value and value != FormatOptions():
                raise problem_at((name,), "has no meaning for a callable; remove it, or use `path`")
