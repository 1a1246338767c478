"""What YAML says of raw data → `Source` and `Splits`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from tfr_assets.option_groups import Shorthand, Via, validate
from tfr_assets.sources.model.kinds import KINDS, TABLE
from tfr_assets.sources.model.slices import Slices
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.source_options import PATH, SourceOptions
from tfr_assets.sources.model.splits import SPLIT_FIELDS, Splits


def _source(said: Any) -> Source:
    """Returns the source of a piece of YAML that is known to be valid."""
    if isinstance(said, str):
        return Source(path=said)
    kind = next((kind for kind in KINDS if kind in said), None)
    if kind is None:
        return Source(**said)
    if kind == TABLE:
        return _source(said[TABLE])
    options = {"path": said[kind]} if isinstance(said[kind], str) else dict(said[kind])
    path, storage_options = options.pop("path", None), options.pop("storage_options", {})
    return Source(path=path, kind=kind, options=options, storage_options=storage_options)


def _are_shares(value: Any) -> bool:
    return isinstance(value, Mapping) and not set(value) & SPLIT_FIELDS


SourceOption = Annotated[Source, Via(Annotated[SourceOptions, PATH], _source)]
SplitsOption = Annotated[
    Splits, Shorthand("fractions", "shares such as {train: 0.8, test: 0.2}", dict[str, float], _are_shares)
]


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
    source: Source = validate(SourceOption, value, field)
    return source


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
    splits: Splits = validate(SplitsOption, value, "splits")
    return splits


def seen_from(root: Path, source: Source) -> Source:
    """Returns a source whose relative paths, those in its options included, start at `root`."""
    options = source.options if source.kind == TABLE else _resolved(root, source.options)
    path = None if source.path is None else _path_from(root, source.path)
    return replace(source, path=path, options=options)


def slices_seen_from(root: Path, slices: Slices | None) -> Slices | None:
    """Returns slices whose folder starts at `root`, if they have one and it is relative."""
    return replace(slices, folder=_path_from(root, slices.folder)) if slices and slices.folder else slices


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
