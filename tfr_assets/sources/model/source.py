"""What a user names as raw data in a dataset's YAML, checked as far as that goes without looking at the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from tfr_assets.errors import ConfigError
from tfr_assets.option_groups import Whole, validate
from tfr_assets.sources.model.kinds import KINDS, TABLE
from tfr_assets.sources.model.source_options import SourceOptions
from tfr_assets.sources.model.splits import Splits

_OF_TABLES = ("path", "callable", "format", "options", "storage_options", "columns", "follow_links")


@dataclass(frozen=True)
class Source:
    """Raw data as the user named it, in the shape that inventories keep. `SourceOptions` describes the fields.

    Attributes:
        path: Of tables and of files of a kind; `mixed` has none.
        callable: Of a table.
        format: Of tables.
        options: Of tables: how text is read. Of a kind other than `table`: what YAML says of it, but for these fields.
        storage_options: Passed to fsspec.
        shuffle_seed: Not None: the rows of each split are shuffled once, by this seed.
        kind: One of `KINDS`: what the raw files are.
        splits: How rows are assigned to splits; None: all are one, `train`.
        columns: Of tables.
        follow_links: Of tables. Other kinds have an option of this name.
        files: Of tables: those of the files at `path` that are meant; None: all.

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
    files: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"source: {self.kind!r} is not a kind of raw data. Known: {', '.join(KINDS)}.")
        if self.shuffle_seed is not None:
            validate(Annotated[int, Whole(0)], self.shuffle_seed, "source.shuffle_seed")
        _ = self.chosen

    @cached_property
    def chosen(self) -> SourceOptions:
        """What YAML says of it, checked; of a kind, its options are in the field of this name."""
        if self.kind == TABLE:
            said: Any = {name: value for name in _OF_TABLES if (value := getattr(self, name)) is not None}
        elif isinstance(self.options, Mapping):
            place = {"path": self.path, "storage_options": self.storage_options}
            said = {self.kind: {**{name: value for name, value in place.items() if value}, **self.options}}
        else:
            said = {self.kind: self.options}
        options: SourceOptions = validate(SourceOptions, said, "source")
        return options

    def __str__(self) -> str:
        """Returns the path or callable, for messages."""
        return self.path or self.callable or self.kind
