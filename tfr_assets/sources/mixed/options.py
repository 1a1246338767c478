"""Options of a mixed source."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tfr_assets.errors import ConfigError
from tfr_assets.sources.model.kinds import TABLE
from tfr_assets.sources.model.options import check_known, choice
from tfr_assets.sources.model.parse import parse_source
from tfr_assets.sources.model.source import Source


@dataclass(frozen=True)
class MixedPart:
    """One of the sources that are joined.

    Attributes:
        source: The source.
        key: The column that holds its keys; empty where rows are files, whose names are the keys.
        prefix: Begins the names of its columns in the records: empty, or the part's name and a slash.
        title: What messages call it.
    """

    source: Source
    key: str
    prefix: str
    title: str


@dataclass(frozen=True)
class MixedOptions:
    """Options of a mixed source.

    Attributes:
        key: Names the feature of the key.
        parts: What is joined: two or more.
        skip: Option `missing`: whether keys that not all parts have are left out.
    """

    key: str
    parts: tuple[MixedPart, ...]
    skip: bool


def parse_options(options: Mapping[str, Any], field: str) -> MixedOptions:
    """Returns what the options of a mixed source mean. Looks at no file.

    Args:
        options: By name.
        field: What they are options of, for messages: `source.mixed`.

    Raises:
        ConfigError: They are invalid.
    """
    check_known(options, ("key", "parts", "missing"), field)
    key = _name(options, "key", field) or "key"
    said = options.get("parts")
    if not isinstance(said, list | tuple) or len(said) < 2:
        raise ConfigError(f"{field}.parts: expected a list of two or more sources, found {said!r}.")
    parts = tuple(_parse_part(part, index, key, f"{field}.parts[{index}]") for index, part in enumerate(said))
    return MixedOptions(key, parts, choice(options, "missing", ("fail", "skip"), "fail", field) == "skip")


def _parse_part(said: Any, index: int, key: str, field: str) -> MixedPart:
    own_key = name = None
    if isinstance(said, Mapping):
        own_key, name = _name(said, "key", field), _name(said, "name", field)
        said = {option: value for option, value in said.items() if option not in ("key", "name")}
    try:
        source = parse_source(said)
    except ConfigError as error:
        raise ConfigError(f"{field}{str(error).removeprefix('source')}") from error
    has_columns = source.kind == TABLE or "column" in source.options
    if source.kind == "mixed":
        raise ConfigError(f"{field}: a part cannot be mixed itself. List its parts here.")
    if own_key and not has_columns:
        raise ConfigError(f"{field}.key: has no meaning for files, whose names are the keys; remove it.")
    column = (own_key or source.options.get("key") or key) if has_columns else ""
    title = f"parts[{index}] ({source.kind} {source})"
    return MixedPart(_with_keys(source, column, field), column, f"{name}/" if name else "", title)


def _with_keys(source: Source, column: str, field: str) -> Source:
    """Returns the source with options by which its rows have keys."""
    if source.kind == "text":
        if source.options.get("per") == "line":
            raise ConfigError(f"{field}.text.per: lines have no keys. Use `document`, or rows with a column of keys.")
        return replace(source, options={**source.options, **({"key": column} if column else {"per": "document"})})
    if column and source.kind != TABLE:
        raise ConfigError(
            f"{field}.{source.kind}.column: cannot be joined: such rows have no keys. Join files, or name the table "
            "itself as a part."
        )
    return source


def _name(options: Mapping[str, Any], option: str, field: str) -> str | None:
    value = options.get(option)
    if value is not None and (not isinstance(value, str) or not value or value.startswith(".")):
        raise ConfigError(f"{field}.{option}: expected a name that does not begin with a dot, found {value!r}.")
    return value
