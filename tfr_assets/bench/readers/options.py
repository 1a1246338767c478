"""What to measure of the readers, and how often."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator, Field, Strict

from tfr_assets.errors import suggestion
from tfr_assets.option_groups import Expect, Whole, options, problem, problem_at
from tfr_assets.reading.registry import READERS

_LONGEST_MS = 60_000


def _check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in READERS:
            raise problem(f"there is no reader {name!r}; {suggestion(name, READERS, 'known are')}")
    return names


_Milliseconds = Annotated[
    float,
    Strict(),
    Field(ge=0, le=_LONGEST_MS, allow_inf_nan=False),
    Expect(f"milliseconds from 0 to {_LONGEST_MS:,}, such as 5"),
]
_Names = Annotated[
    tuple[str, ...], Expect("a list of texts, such as [vectorized, columnar]"), AfterValidator(_check_names)
]


@options("readers")
class BenchOptions:
    """How the readers are measured.

    Attributes:
        batch_size: Records per batch.
        epochs: Passes over the records in one process: the first begins with a cold page cache, the others are warm.
        repeats: Processes per reader, in turn with the others. A reader that takes long gets fewer.
        only: Names of the readers. Default: all.
        step_ms: Simulated training step after each batch, in milliseconds.
        decode_ms: Simulated cost of decoding one record, in milliseconds, within the reader's own parsing.

    Raises:
        ConfigError: A value is invalid.
    """

    batch_size: Annotated[int, Whole(1, example="1024")] = Field(default=1024, examples=[4096])
    epochs: Annotated[int, Whole(2, example="2: the first is cold, the others are warm")] = Field(
        default=2, examples=[3]
    )
    repeats: Annotated[int, Whole(1, example="3")] = Field(default=3, examples=[5])
    only: _Names = Field(default=(), examples=[["vectorized", "columnar"]])
    step_ms: _Milliseconds = Field(default=0.0, examples=[10])
    decode_ms: _Milliseconds = Field(default=0.0, examples=[0.1])

    def __post_init__(self) -> None:
        """Checks what goes together."""
        elsewhere = [name for name in self.only if not _parses_here(name)]
        if self.decode_ms and elsewhere:
            text = (
                f"reader {elsewhere[0]!r} parses in other processes, where no cost can be simulated; "
                "leave it out of readers.only, or set decode_ms to 0"
            )
            raise problem_at(("decode_ms",), text, self.decode_ms)

    @property
    def readers(self) -> tuple[str, ...]:
        """Names of the readers to measure, in order."""
        return self.only or tuple(name for name in READERS if not self.decode_ms or _parses_here(name))

    def of(self, readers: Sequence[str]) -> "BenchOptions":
        """Returns the same for some readers only."""
        return replace(self, only=tuple(readers))


def _parses_here(name: str) -> bool:
    return READERS[name].parsed_by != "processes"
