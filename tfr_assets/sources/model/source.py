"""What a user names as raw data in a dataset's YAML, checked as far as that goes without looking at the data."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tfr_assets.errors import ConfigError
from tfr_assets.sources.model.kinds import KINDS, TABLE, kind_named
from tfr_assets.sources.model.splits import Splits

UNION = "union"
FORMATS = ("parquet", "csv", "jsonl", "arrow")

_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "csv": ("delimiter", "quote_char", "column_names", "skip_rows", "encoding", "null_values", "column_types"),
    "jsonl": ("column_types",),
    "parquet": (),
    "arrow": (),
}
_CALLABLE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

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


@dataclass(frozen=True)
class Source:
    """Raw data as the user named it; exactly one of `path` and `callable` is set, and neither for `mixed`.

    Attributes:
        path: A file, a folder (with all its subfolders), a glob, or an fsspec URL of these (`s3://`, `https://`,
            `memory://`, `file://`, …). `~` is the home folder.
        callable: `package.module:attribute`: a function without arguments that returns or yields Arrow data, pandas
            DataFrames or dicts (one per row), or an attribute that is a table or a DataFrame.
        format: One of `FORMATS`; None goes by the files' endings.
        options: Of a kind other than `table`: that kind's own. Of tables: how text is parsed. csv: delimiter,
            quote_char (None: no quoting), column_names (for files without a header), skip_rows, encoding, null_values
            (text that stands for a missing value, in columns of strings too), column_types. jsonl: column_types. The
            others have none.
        columns: Of tables in several files: `same`, all must have the same columns; or `union`, a file may lack some,
            which are null there. Lines of jsonl may lack keys anyway.
        follow_links: Of tables on a local disk: whether links are followed that lead out of the folder. Other kinds
            have an option of this name.
        storage_options: Passed to fsspec, such as `{"anon": True}`.
        shuffle_seed: Not None: the rows of each split are shuffled once, by this seed.
        kind: One of `KINDS`: what the raw files are.
        splits: How rows are assigned to splits; None: all are one, `train`.

    Raises:
        ConfigError: A field is wrong; the message names it.
    """

    path: str | None = None
    callable: str | None = None
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    shuffle_seed: int | None = None
    kind: str = TABLE
    splits: Splits | None = None
    columns: str = "same"
    follow_links: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"source: {self.kind!r} is not a kind of raw data. Known: {', '.join(KINDS)}.")
        if self.shuffle_seed is not None and (not _is_int(self.shuffle_seed) or self.shuffle_seed < 0):
            raise ConfigError(f"source.shuffle_seed: expected a whole number from 0 up, found {self.shuffle_seed!r}.")
        for name in ("options", "storage_options"):
            if not isinstance(getattr(self, name), Mapping):
                raise ConfigError(f"source.{name}: expected names with values, found {getattr(self, name)!r}.")
        if self.kind == TABLE:
            self._check_table()
        elif self.kind != "mixed" and not self.path:
            raise ConfigError(f"source.{self.kind}.path: missing. Name a file, a folder, a glob or a URL of these.")
        else:
            kind_named(self.kind).check_options(self.options, f"source.{self.kind}")

    def _check_table(self) -> None:
        if bool(self.path) == bool(self.callable):
            found = "both are set" if self.path else "neither is set"
            raise ConfigError(f"source: set exactly one of `path` and `callable`; {found}.")
        if self.format is not None and self.format not in FORMATS:
            raise ConfigError(f"source.format: {self.format!r} is not known. Choose one of: {', '.join(FORMATS)}.")
        if self.columns not in ("same", UNION):
            raise ConfigError(f"source.columns: expected `same` or `union`, found {self.columns!r}.")
        if not isinstance(self.follow_links, bool):
            raise ConfigError(f"source.follow_links: expected true or false, found {self.follow_links!r}.")
        if self.callable:
            self._check_callable(self.callable)
        check_options(self.format, self.options)

    def _check_callable(self, name: str) -> None:
        if not _CALLABLE.fullmatch(name):
            raise ConfigError(
                f"source.callable: {name!r} is not of the form `package.module:function`, such as `my_data.load:rows`."
            )
        for field_name in ("format", "options", "storage_options", "follow_links"):
            if getattr(self, field_name):
                raise ConfigError(f"source.{field_name}: has no meaning for a callable; remove it, or use `path`.")

    def __str__(self) -> str:
        """Returns the path or callable, for messages."""
        return self.path or self.callable or self.kind


def column_types(options: Mapping[str, Any]) -> dict[str, pa.DataType]:
    """Returns the Arrow types that the user's `column_types` name.

    Raises:
        ConfigError: A name is not a type.
    """
    found = options.get("column_types") or {}
    if not isinstance(found, Mapping):
        raise ConfigError(f"source.options.column_types: expected column names with types, found {found!r}.")
    for column, name in found.items():
        if not isinstance(name, str) or name not in _TYPES:
            raise ConfigError(
                f"source.options.column_types: {name!r}, for column {column!r}, is not a type. "
                f"Choose one of: {', '.join(TYPE_NAMES)}."
            )
    return {str(column): _TYPES[name] for column, name in found.items()}


def check_options(format_: str | None, options: Mapping[str, Any]) -> None:
    """Checks reading options; with an unknown format, as far as they can be right for any.

    Raises:
        ConfigError: An option is unknown, not one of the format, or has an impossible value.
    """
    known = sorted({name for names in _OPTIONS.values() for name in names}) if format_ is None else _OPTIONS[format_]
    for name in options:
        if name not in known:
            of = f" of format {format_!r}" if format_ else ""
            choice = f"Known: {', '.join(known)}." if known else "It has none: remove it."
            raise ConfigError(f"source.options: {name!r} is not an option{of}. {choice}")
    for name in ("delimiter", "quote_char"):
        value = options.get(name)
        if value is not None and not (isinstance(value, str) and len(value.encode()) == 1):
            raise ConfigError(f"source.options.{name}: expected one ASCII character, found {value!r}.")
    if "delimiter" in options and options["delimiter"] is None:
        raise ConfigError("source.options.delimiter: expected one ASCII character, found nothing.")
    skip = options.get("skip_rows", 0)
    if not _is_int(skip) or skip < 0:
        raise ConfigError(f"source.options.skip_rows: expected a whole number from 0 up, found {skip!r}.")
    for name in ("column_names", "null_values"):
        value = options.get(name)
        if value is not None and not (isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)):
            raise ConfigError(f"source.options.{name}: expected a list of texts, found {value!r}.")
    _check_encoding(options.get("encoding", "utf-8"))
    column_types(options)


def _check_encoding(name: Any) -> None:
    try:
        "".encode(name)
    except (LookupError, TypeError):
        raise ConfigError(
            f"source.options.encoding: {name!r} is not an encoding. Common ones: utf-8, latin-1, cp1252, utf-16."
        ) from None


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
