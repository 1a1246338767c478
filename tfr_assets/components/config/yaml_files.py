"""Is a YAML file one that can be loaded at all? Looked at event by event, before anything is built of it.

Loaders call themselves for each level, unfold aliases that name each other, and count on whole numbers that Python
converts: what goes too far there is a recursion error, an hour of work, or a message without a line.
"""

from pathlib import Path

import yaml

from tfr_assets.errors import ConfigError

_LARGEST = 1 << 20  # bytes
_DEEPEST = 50  # levels
_MOST_VALUES = 10_000  # with aliases unfolded
_LONGEST_NUMBER = 4_000  # digits; Python converts 4,300
_EVENTS = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_yaml(file: Path) -> None:
    """Checks that a YAML file can be read.

    Raises:
        ConfigError: It cannot; the message names the file, the line and the remedy.
    """
    content = file.read_bytes()
    if len(content) > _LARGEST:
        raise ConfigError(f"{file}: is {len(content):,} bytes large; a dataset's YAML has {_LARGEST:,} at most")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{file}: line {line}: holds bytes that are not UTF-8 text; save the file as UTF-8"
        ) from error
    try:
        values = _count_values(file, text)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{file}: {_describe(error)}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: is no YAML: {error}") from error
    if not values:
        raise ConfigError(
            f"{file}: is empty; it starts with `type: tfr_assets.TFRecordDataset`. Write it, or remove the file"
        )


def _count_values(file: Path, text: str) -> int:
    """Returns the number of keys and values, aliases unfolded."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []  # anchors of what is open, and the values before each
    count = 0
    for event in yaml.parse(text, Loader=_EVENTS):
        where = f"{file}: line {event.start_mark.line + 1 if event.start_mark else '?'}"
        if isinstance(event, yaml.ScalarEvent):
            count += bool(event.value or event.style)
            if event.implicit[0] and len(event.value) > _LONGEST_NUMBER and event.value.strip("+-").isdigit():
                raise ConfigError(
                    f"{where}: a number of {len(event.value):,} digits; write it in quotes, or correct it"
                )
            sizes |= {event.anchor: 1} if event.anchor else {}
        elif isinstance(event, yaml.AliasEvent):
            count += sizes.get(str(event.anchor), 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, count))
            count += 1
            if len(open_) > _DEEPEST:
                raise ConfigError(f"{where}: is nested more than {_DEEPEST} deep; no setting is")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            sizes |= {anchor: count - before} if anchor else {}
        if count > _MOST_VALUES:
            raise ConfigError(
                f"{where}: has more than {_MOST_VALUES:,} values, with aliases (`*name`) unfolded; remove some"
            )
    return count


def _describe(error: yaml.MarkedYAMLError) -> str:
    """Returns where what cannot be parsed begins, and where that is noticed, in a line."""
    noticed = f"{error.problem} in line {error.problem_mark.line + 1}" if error.problem_mark else str(error.problem)
    if error.context and error.context_mark:
        return f"line {error.context_mark.line + 1}: is no YAML: {error.context}: {noticed}"
    return f"is no YAML: {noticed}"
