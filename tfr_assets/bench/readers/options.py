"""What to measure of the readers, and how often."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tfr_assets.errors import ConfigError, suggestion
from tfr_assets.reading.registry import READERS

_LONGEST_MS = 60_000


@dataclass(frozen=True)
class BenchOptions:
    """How readers are measured.

    Attributes:
        batch_size: Records per batch.
        epochs: Passes over the records in one process: the first begins with a cold page cache, the others are warm.
        repeats: Processes a reader. A reader that takes long gets fewer.
        only: Names of the readers; none: all.
        step_ms: Simulated training step after each batch, in milliseconds.
        decode_ms: Simulated cost of decoding one record, in milliseconds, within the reader's own parsing.

    Raises:
        ConfigError: A value is invalid.
    """

    batch_size: int = 1024
    epochs: int = 2
    repeats: int = 3
    only: tuple[str, ...] = ()
    step_ms: float = 0.0
    decode_ms: float = 0.0

    def __post_init__(self) -> None:
        _check_whole("batch_size", self.batch_size, 1, "1024")
        _check_whole("epochs", self.epochs, 2, "2: the first is cold, the others are warm")
        _check_whole("repeats", self.repeats, 1, "3")
        for name in self.only:
            _check_name(name)
        for field in ("step_ms", "decode_ms"):
            _check_milliseconds(field, getattr(self, field))
        elsewhere = [name for name in self.only if not _parses_here(name)]
        if self.decode_ms and elsewhere:
            raise ConfigError(
                f"readers.decode_ms: reader {elsewhere[0]!r} parses in other processes, where no cost can be "
                "simulated; leave it out of readers.only, or set decode_ms to 0"
            )

    @property
    def readers(self) -> tuple[str, ...]:
        """Names of the readers to measure, in order."""
        return self.only or tuple(name for name in READERS if not self.decode_ms or _parses_here(name))

    def of(self, readers: Sequence[str]) -> "BenchOptions":
        """Returns the same for some readers only."""
        return replace(self, only=tuple(readers))


def _parses_here(name: str) -> bool:
    return READERS[name].parsed_by != "processes"


def _check_whole(field: str, value: Any, least: int, example: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(
            f"readers.{field}: expected a whole number from {least} up, such as {example}; found {value!r}"
        )


def _check_name(name: Any) -> None:
    if name in READERS:
        return
    raise ConfigError(f"readers.only: there is no reader {name!r}; {suggestion(name, READERS, 'known are')}")


def _check_milliseconds(field: str, value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _LONGEST_MS:
        raise ConfigError(
            f"readers.{field}: expected milliseconds from 0 to {_LONGEST_MS:,}, such as 5; found {value!r}"
        )
