"""Options that the kinds of files have in common, and how a wrong one is reported."""

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from tfr_assets.errors import ConfigError


def check_known(options: Mapping[str, Any], known: Collection[str], field: str) -> None:
    """Raises ConfigError if an option is not one of `known`; `field` is what they are options of (`source.images`)."""
    for name in options:
        if name not in known:
            raise ConfigError(
                f"{field}.{name}: there is no such option{did_you_mean(name, known)}. There are: {', '.join(known)}."
            )


def choice(options: Mapping[str, Any], name: str, choices: Collection[str], default: str, field: str) -> str:
    """Returns the option `name`, or `default` where it is not given.

    Raises:
        ConfigError: It is not one of `choices`.
    """
    value = options.get(name, default)
    if value not in choices:
        hint = did_you_mean(value, choices)
        raise ConfigError(f"{field}.{name}: {value!r} is not known{hint}. Choose one of: {', '.join(choices)}.")
    return str(value)


def on_error(options: Mapping[str, Any], field: str) -> bool:
    """Returns whether bad files are left out: option `on_error`, `fail` (the default) or `skip`.

    Raises:
        ConfigError: It is neither.
    """
    return choice(options, "on_error", ("fail", "skip"), "fail", field) == "skip"


def follow_links(options: Mapping[str, Any], field: str, of_files: bool = True) -> bool:
    """Returns whether links are followed that lead out of the source's folder: option `follow_links`.

    Args:
        options: By name.
        field: What they are options of, for messages.
        of_files: Whether files become rows, rather than rows of tables.

    Raises:
        ConfigError: It is neither true nor false, or given where tables are read.
    """
    if "follow_links" in options and not of_files:
        raise ConfigError(f"{field}.follow_links: has no meaning beside `column`; remove it.")
    value = options.get("follow_links", False)
    if not isinstance(value, bool):
        raise ConfigError(f"{field}.follow_links: expected true or false, found {value!r}.")
    return value


def did_you_mean(found: object, known: Collection[str]) -> str:
    """Returns a question to append to a message, or nothing where no name is close to what was found."""
    close = difflib.get_close_matches(str(found), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
