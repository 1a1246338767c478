"""Options of a source of texts."""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfr_assets.errors import ConfigError
from tfr_assets.sources.media.labels import LabelOptions, parse_labels
from tfr_assets.sources.model.options import check_known, choice, follow_links, on_error

TEXT = "text"  # names the column, and begins the names of the others
DOCUMENT, LINE, ROW = "document", "line", "row"
ENDINGS = (".txt", ".md", ".rst", ".html", ".htm", ".xml", ".tex")
_OF_ROWS = ("column", "key", "format", "options")
_OPTIONS = (
    *("per", "encoding", "endings", *_OF_ROWS),
    *("labels", "classes", "max_length", "tokenizer", "on_error", "follow_links"),
)


@dataclass(frozen=True)
class TextOptions:
    """Options of a source of texts.

    Attributes:
        per: What becomes a record: `document`, `line` or `row`; None: a line of a path that is one file, otherwise a
            document.
        encoding: Of documents and lines, as Python names it; of rows, where they are CSV.
        endings: Of the files that are documents or have lines, lower-case.
        column: For rows: the column of texts.
        key: For rows: the column that parts of a mixed source are joined by.
        table: For rows: `format` and `options`, as for a table.
        labels: Options `labels` and `classes`.
        max_length: Most tokens of a text, or without a tokenizer most characters; None: no limit.
        tokenizer: A `tokenizer.json`, or `package.module:function`.
        skip: Option `on_error`: whether texts that cannot be used are left out.
        follow_links: Option of this name: whether links that lead out of the folder are followed.
    """

    per: str | None
    encoding: str
    endings: tuple[str, ...]
    column: str
    key: str | None
    table: Mapping[str, Any] = field(repr=False)
    labels: LabelOptions
    max_length: int | None
    tokenizer: str | None
    skip: bool
    follow_links: bool


def parse_options(options: Mapping[str, Any], field: str) -> TextOptions:
    """Returns what the options of a source of texts mean. Looks at no file.

    Args:
        options: By name.
        field: What they are options of, for messages: `source.text`.

    Raises:
        ConfigError: They are invalid.
    """
    check_known(options, _OPTIONS, field)
    for name in ("column", "key", "tokenizer", "format"):
        if options.get(name) is not None and (not isinstance(options[name], str) or not options[name]):
            raise ConfigError(f"{field}.{name}: expected text, found {options[name]!r}.")
    per = _parse_per(options, field)
    table = {name: options[name] for name in ("format", "options") if name in options}
    if per == ROW and "encoding" in options:
        table["options"] = {"encoding": options["encoding"], **table.get("options", {})}
    return TextOptions(
        per=per,
        encoding=_parse_encoding(options.get("encoding", "utf-8"), field),
        endings=_parse_endings(options.get("endings", ENDINGS), field),
        column=options.get("column", ""),
        key=options.get("key"),
        table=table,
        labels=parse_labels(options, field, rows_have_columns=per == ROW),
        max_length=_parse_length(options.get("max_length"), field),
        tokenizer=options.get("tokenizer"),
        skip=on_error(options, field),
        follow_links=follow_links(options, field, of_files=per != ROW),
    )


def _parse_per(options: Mapping[str, Any], field: str) -> str | None:
    per = choice(options, "per", (DOCUMENT, LINE, ROW), ROW, field) if "per" in options else None
    if per is None and "column" in options:
        per = ROW
    if per == ROW and "column" not in options:
        raise ConfigError(f"{field}.column: missing. With `per: row`, it names the column that holds the texts.")
    for name in _OF_ROWS if per != ROW else ("endings",):
        if name in options:
            said = f"`per: {per}`" if per else "files of text"
            raise ConfigError(f"{field}.{name}: has no meaning for {said}; remove it.")
    return per


def _parse_encoding(name: Any, field: str) -> str:
    try:
        "".encode(name)
        codecs.getincrementaldecoder(name)
    except (LookupError, TypeError):
        raise ConfigError(
            f"{field}.encoding: {name!r} is not an encoding. Common ones: utf-8, latin-1, cp1252, utf-16."
        ) from None
    return str(name)


def _parse_endings(endings: Any, field: str) -> tuple[str, ...]:
    if not isinstance(endings, list | tuple) or not endings or not all(_is_ending(ending) for ending in endings):
        raise ConfigError(f"{field}.endings: expected a list of endings such as ['.txt', '.log'], found {endings!r}.")
    return tuple(ending.lower() for ending in endings)


def _is_ending(ending: Any) -> bool:
    return isinstance(ending, str) and ending.startswith(".") and len(ending) > 1 and "." not in ending[1:]


def _parse_length(value: Any, field: str) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ConfigError(f"{field}.max_length: expected a whole number from 1 up, found {value!r}.")
    return value
