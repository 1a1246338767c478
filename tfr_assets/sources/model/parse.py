"""What YAML says of raw data → `Source`."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tfr_assets.errors import ConfigError
from tfr_assets.sources.model.kinds import KINDS, TABLE
from tfr_assets.sources.model.options import did_you_mean
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.splits import Splits

_TABLE_FIELDS = ("path", "callable", "format", "options", "storage_options", "columns", "follow_links")
_SPLIT_FIELDS = {field.name for field in fields(Splits)}


def parse_source(value: Any, field: str = "source") -> Source:
    """Returns the source that a piece of YAML describes.

    | YAML                                            | source                                    |
    |-------------------------------------------------|-------------------------------------------|
    | `PATH`                                          | a table in files                          |
    | `{path: …, format: …}`, `{callable: …}`         | a table, with more to say                 |
    | `{images: PATH}`, `{audio: …}`, `{text: …}`     | files of that kind                        |
    | `{images: {path: PATH, labels: …}}`             | the same, with the kind's options         |
    | `{mixed: {key: …, parts: […]}}`                 | several, joined                           |

    Args:
        value: The YAML.
        field: What errors call it.

    Raises:
        ConfigError: It is invalid; the message begins with the field.
    """
    if isinstance(value, str):
        return Source(path=value)
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{field}: expected a path such as 'raw/*.parquet', or a mapping with `path`, `callable`, "
            f"{', '.join(f'`{kind}`' for kind in KINDS[1:])}; found {value!r}"
        )
    kinds = [key for key in value if key in KINDS]
    if not kinds:
        return _table(value, field)
    if len(value) > 1:
        other = next(key for key in value if key != kinds[0])
        raise ConfigError(f"{field}.{other}: beside `{kinds[0]}` nothing else is allowed; move it into `{kinds[0]}`.")
    return _of_kind(str(kinds[0]), value[kinds[0]], field)


def _table(value: Mapping[str, Any], field: str) -> Source:
    _refuse_unknown(field, value, (*_TABLE_FIELDS, *KINDS[1:]))
    for name in ("path", "callable", "format", "columns"):
        if value.get(name) is not None and not isinstance(value[name], str):
            raise ConfigError(f"{field}.{name}: expected text, found {value[name]!r}")
    return Source(**value)


def _refuse_unknown(field: str, value: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in value:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ConfigError(f"{field}.{name}: not a setting{hint}. Known are {', '.join(known)}")


def _of_kind(kind: str, value: Any, field: str) -> Source:
    if kind == TABLE:
        return parse_source(value, f"{field}.{kind}")
    said: Any = {"path": value} if isinstance(value, str) else value
    if not isinstance(said, Mapping):
        raise ConfigError(f"{field}.{kind}: expected a path, or a mapping with `path` and options; found {value!r}")
    options = {name: item for name, item in said.items() if name not in ("path", "storage_options")}
    path = said.get("path")
    if path is not None and not isinstance(path, str):
        raise ConfigError(f"{field}.{kind}.path: expected text, found {path!r}")
    return Source(path=path, kind=kind, options=options, storage_options=said.get("storage_options", {}))


def parse_splits(value: Any) -> Splits:
    """Returns the splits that a piece of YAML describes.

    | YAML                                                  | splits                               |
    |-------------------------------------------------------|--------------------------------------|
    | `{train: 0.8, validation: 0.1, test: 0.1}`            | shares, by a hash of the row         |
    | `{fractions: {train: 0.8, test: 0.2}, key: user_id}`  | shares, by a hash of that column     |
    | `{column: part, values: [train, test]}`               | the column names the row's split     |
    | `{folder: [train, test]}`                             | the first folder names it            |

    Raises:
        ConfigError: It is invalid.
    """
    if not isinstance(value, Mapping) or not value:
        raise ConfigError(f"splits: expected shares such as {{train: 0.8, test: 0.2}}; found {value!r}")
    if not set(value) & _SPLIT_FIELDS:
        return Splits(_shares("splits", value))
    _refuse_unknown("splits", value, sorted(_SPLIT_FIELDS))
    ways = [name for name in ("fractions", "column", "folder") if value.get(name)]
    if len(ways) != 1:
        raise ConfigError("splits: set exactly one of `fractions` (shares), `column` (with `values`) and `folder`")
    for name, of in (("key", "fractions"), ("values", "column")):
        if value.get(name) and of != ways[0]:
            raise ConfigError(f"splits.{name}: has a meaning only with `{of}`; remove it")
    if ways[0] == "column" and not value.get("values"):
        raise ConfigError("splits.values: missing; list the column's values, such as [train, test]: each is a split")
    for name in ("key", "column"):
        if value.get(name) is not None and not isinstance(value[name], str):
            raise ConfigError(f"splits.{name}: expected the name of a column, found {value[name]!r}")
    return Splits(
        fractions=_shares("splits.fractions", value.get("fractions") or {}),
        key=value.get("key"),
        column=value.get("column"),
        values=_names("splits.values", value.get("values") or ()),
        folder=_names("splits.folder", value.get("folder") or ()),
    )


def _shares(field: str, value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{field}: expected shares such as {{train: 0.8, test: 0.2}}; found {value!r}")
    for name, share in value.items():
        if not isinstance(share, int | float) or isinstance(share, bool):
            raise ConfigError(f"{field}.{name}: expected a share such as 0.1, found {share!r}")
    return {str(name): float(share) for name, share in value.items()}


def _names(field: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"{field}: expected a list of names, such as [train, test]; found {value!r}")
    return tuple(value)


def seen_from(root: Path, source: Source) -> Source:
    """Returns a source whose relative paths, those in its options included, start at `root`."""
    options = source.options if source.kind == TABLE else _resolved(root, source.options)
    path = None if source.path is None else _path_from(root, source.path)
    return replace(source, path=path, options=options)


_PATHS = {"path", "table", *KINDS}


def _resolved(root: Path, value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {
            name: item if name in ("options", "storage_options") else _resolved(root, item, name)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_resolved(root, item, "path" if key == "parts" else key) for item in value]
    is_path = key in _PATHS or (key == "tokenizer" and isinstance(value, str) and ":" not in value)
    return _path_from(root, value) if is_path and isinstance(value, str) else value


def _path_from(root: Path, path: str) -> str:
    """Returns `path` as seen from `root`, unless it is a URL, absolute, or in a home folder."""
    return path if "://" in path or path.startswith("~") else str(root / path)
