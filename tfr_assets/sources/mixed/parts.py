"""What a mixed source joins."""

from dataclasses import dataclass, replace
from typing import Any

from tfr_assets.sources.model.kinds import TABLE
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
class MixedSource:
    """What a mixed source joins.

    Attributes:
        key: Names the feature of the key.
        parts: What is joined: two or more.
        skip: Option `missing`: whether keys that not all parts have are left out.
    """

    key: str
    parts: tuple[MixedPart, ...]
    skip: bool


def mixed_source(source: Source) -> MixedSource:
    """Returns what a source of the kind `mixed` joins."""
    chosen = source.chosen.mixed
    assert chosen
    said = source.options["parts"]
    parts = tuple(_part(part, index, chosen.key) for index, part in enumerate(said))
    return MixedSource(chosen.key, parts, chosen.missing == "skip")


def _part(said: Any, index: int, key: str) -> MixedPart:
    own = {} if isinstance(said, str) else {name: said[name] for name in ("key", "name") if name in said}
    source = parse_source(said if isinstance(said, str) else {name: said[name] for name in said if name not in own})
    has_columns = source.kind == TABLE or bool(source.chosen.text and source.chosen.text.rows_have_columns)
    column = (own.get("key") or source.options.get("key") or key) if has_columns else ""
    name, title = own.get("name"), f"parts[{index}] ({source.kind} {source})"
    if source.kind == "text":
        by = {"key": column} if column else {"per": "document"}
        source = replace(source, options={**source.options, **by})
    return MixedPart(source, column, f"{name}/" if name else "", title)
